// How the table is sorted. What is equal is in the order of the names, so that rows do not jump.
import { ends, type Row, type Rows } from './rows'
import { moment } from './time'

export const sorts = ['state', 'resource', 'holder', 'left', 'held', 'waiting', 'token', 'door'] as const

export type SortKey = (typeof sorts)[number]

export interface Sort {
  key: SortKey
  down: boolean
}

/** parseSort reads "left" or "-left"; anything else is by resource. */
export function parseSort(text: string | null): Sort {
  const down = text?.startsWith('-') ?? false
  const key = sorts.find(k => k === text?.replace(/^-/, ''))
  return key ? { key, down } : { key: 'resource', down: false }
}

/** formatSort writes what parseSort reads; the default is empty. */
export function formatSort(sort: Sort): string {
  if (sort.key === 'resource' && !sort.down) return ''
  return (sort.down ? '-' : '') + sort.key
}

const rank: Record<string, number> = { expired: 0, broken: 1, breaking: 2, leased: 3, available: 4 }

const keys: Record<SortKey, (row: Row) => number | string> = {
  state: r => rank[r.state] ?? 9,
  resource: r => r.resource,
  holder: r => r.holders[0]?.holder ?? r.last?.holder ?? '\uffff',
  left: r => (r.holders.length === 0 ? -Infinity : ends(r)),
  held: r => Math.min(...r.holders.map(l => moment(l.acquired) ?? Infinity)),
  waiting: r => -r.waiting,
  token: r => -Math.max(...r.holders.map(l => l.token), r.last?.token ?? 0),
  door: r => r.holders[0]?.door ?? '\uffff',
}

interface Entry {
  row: Row
  key: number | string
}

/** An Order is the rows that a test keeps, sorted. Only what has changed is tested and sorted again. */
export class Order {
  private entries: Entry[] = []
  private seen = new WeakSet<Row>()

  constructor(
    private readonly sort: Sort,
    private readonly keeps: (row: Row) => boolean,
  ) {}

  /** update takes in the rows as they are now, and returns those that are kept, in order. */
  update(rows: Rows): Row[] {
    const kept = this.entries.filter(e => rows.get(e.row.resource) === e.row)
    const fresh: Entry[] = []
    const key = keys[this.sort.key]
    for (const row of rows.values()) {
      if (this.seen.has(row)) continue
      this.seen.add(row)
      if (this.keeps(row)) fresh.push({ row, key: key(row) })
    }
    fresh.sort(this.compare)
    this.entries = fresh.length === 0 ? kept : this.merge(kept, fresh)
    return this.entries.map(e => e.row)
  }

  private merge(a: Entry[], b: Entry[]): Entry[] {
    const all: Entry[] = []
    let i = 0
    for (const entry of b) {
      while (i < a.length && this.compare(a[i]!, entry) < 0) all.push(a[i++]!)
      all.push(entry)
    }
    while (i < a.length) all.push(a[i++]!)
    return all
  }

  private compare = (a: Entry, b: Entry): number => {
    if (a.key !== b.key) return a.key < b.key === this.sort.down ? 1 : -1
    return a.row.resource < b.row.resource ? -1 : 1
  }
}
