// How the table is sorted. What is equal is in the order of the names, so that rows do not jump.
import { ends, type Row } from './rows'
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

/** sortRows returns the rows in order. */
export function sortRows(rows: Row[], sort: Sort): Row[] {
  const key = keys[sort.key]
  const sign = sort.down ? -1 : 1
  const keyed = rows.map(row => ({ row, key: key(row) }))
  keyed.sort((a, b) => {
    if (a.key !== b.key) return a.key < b.key ? -sign : sign
    return a.row.resource < b.row.resource ? -1 : 1
  })
  return keyed.map(k => k.row)
}
