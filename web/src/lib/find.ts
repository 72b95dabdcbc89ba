// What the palette finds.
import type { Command } from './commands.svelte'
import type { Row } from './rows'

export type Found =
  | { kind: 'command'; name: string; command: Command }
  | { kind: 'resource' | 'holder' | 'namespace'; name: string }

interface Where {
  commands: Command[]
  rows: Row[]
  namespaces: string[]
}

const most = 40

/** find returns what has all words of the text in its name: what begins with the text first. */
export function find(text: string, where: Where): Found[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const all: Found[] = where.commands.map(command => ({ kind: 'command', name: command.name, command }))
  if (words.length > 0) {
    for (const name of where.namespaces) all.push({ kind: 'namespace', name })
    const holders = new Set<string>()
    for (const row of where.rows) {
      all.push({ kind: 'resource', name: row.resource })
      for (const lease of row.holders) holders.add(lease.holder)
    }
    for (const name of holders) all.push({ kind: 'holder', name })
  }
  const whole = words.join(' ')
  const scored: { item: Found; score: number }[] = []
  for (const item of all) {
    const name = item.name.toLowerCase()
    if (!words.every(w => name.includes(w))) continue
    scored.push({ item, score: name === whole ? 0 : name.startsWith(whole) ? 1 : 2 })
  }
  scored.sort((a, b) => a.score - b.score)
  return scored.slice(0, most).map(s => s.item)
}
