// The same on the command line: it teaches, and can be pasted.
import { shell } from './text'

interface Place {
  origin: string
  namespace: string
}

const standard = ['http://127.0.0.1:4653', 'http://localhost:4653']

/** command writes a command for this server and namespace. */
export function command(place: Place, ...words: (string | undefined)[]): string {
  const all = ['leasehold', ...words.filter(w => w !== undefined)]
  if (place.namespace !== 'default') all.push('-N', place.namespace)
  if (!standard.includes(place.origin)) all.push('--server', place.origin)
  return all.map(shell).join(' ')
}

export interface BreakChoice {
  resource: string
  id?: string // one lease; else all
  several: boolean
  period?: string // left out: what remains
  reason: string
}

export function breakCommand(place: Place, c: BreakChoice): string {
  const which = c.id && c.several ? ['--id', c.id] : c.several ? ['--all'] : []
  const period = c.period === '0s' ? ['--now'] : c.period ? ['--period', c.period] : []
  return command(place, 'break', c.resource, ...which, ...period, '--reason', c.reason || '…')
}
