// How the units of a pool are shown: which a filter picks, and where their cards lie.
import type { PoolUnit } from './types'

/** matches reports whether a unit has all words of a filter somewhere in what is known of it. */
export function matches(unit: PoolUnit, words: string[]): boolean {
  if (words.length === 0) return true
  const labels = Object.entries(unit.labels ?? {}).map(([key, value]) => `${key}=${value}`)
  const text = [unit.name, unit.host, unit.state, unit.holder, unit.reason, unit.why, unit.use?.idle_since ? 'idle' : '', ...labels].join('\n').toLowerCase()
  return words.every(w => text.includes(w))
}

/** wordsOf splits what somebody typed into a filter. */
export const wordsOf = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(w => w !== '')

/** A Line is one line of the page: the name of a host, or some of its cards. */
export interface Line {
  host: string
  /** where its first card is in the list of units; a line without cards is that of a host. */
  from: number
  count: number
  top: number
  height: number
}

export interface Sizes {
  columns: number
  card: number
  head: number
}

/** layOut puts units, which are in the order of their hosts, into lines. */
export function layOut(units: PoolUnit[], { columns, card, head }: Sizes): { lines: Line[]; height: number } {
  const lines: Line[] = []
  let top = 0
  const add = (host: string, from: number, count: number, height: number) => {
    lines.push({ host, from, count, top, height })
    top += height
  }
  for (let i = 0; i < units.length; ) {
    const host = units[i]!.host ?? ''
    let end = i
    while (end < units.length && (units[end]!.host ?? '') === host) end++
    add(host, i, 0, head)
    for (; i < end; i += columns) add(host, i, Math.min(columns, end - i), card)
    i = end
  }
  return { lines, height: top }
}

/** within returns the lines that are between two heights. */
export function within(lines: Line[], from: number, to: number): Line[] {
  let low = 0
  let high = lines.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (lines[middle]!.top + lines[middle]!.height <= from) low = middle + 1
    else high = middle
  }
  const shown: Line[] = []
  for (let i = low; i < lines.length && lines[i]!.top < to; i++) shown.push(lines[i]!)
  return shown
}
