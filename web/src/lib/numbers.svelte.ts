// The numbers above the table that the stream does not carry: what ended in the last hour.
import { api, problemOf } from './api'
import { clock } from './clock.svelte'
import { isUnclean } from './rows'
import { moment } from './time'
import type { Hold } from './types'

const hour = 3_600_000
const pages = 5 // of 1,000 holds: beyond it the newest 5,000 of the hour are counted
const often = 30_000

export class Numbers {
  /** the median of held times, in milliseconds; undefined if nothing ended. */
  p50 = $state<number | undefined>()
  unclean = $state<number | undefined>()
  /** why there is no number of holds, if so. */
  holdsError = $state('')

  constructor(private readonly namespace: string) {}

  /** start reads now and again, until the function that it returns is called. */
  start(): () => void {
    const read = () => void (document.visibilityState === 'visible' && this.readHolds())
    read()
    const timer = setInterval(read, often)
    return () => clearInterval(timer)
  }

  async readHolds(): Promise<void> {
    try {
      const holds: Hold[] = []
      const from = new Date(clock.read() - hour).toISOString()
      for (let after: string | undefined, n = 0; n === 0 || (after && n < pages); n++) {
        const page = await api.holds(this.namespace, { from, limit: 1_000, after })
        holds.push(...page.items)
        after = page.next
      }
      this.p50 = median(holds.map(h => (moment(h.until) ?? 0) - (moment(h.since) ?? 0)))
      this.unclean = holds.filter(h => isUnclean(h.how)).length
      this.holdsError = ''
    } catch (e) {
      this.p50 = this.unclean = undefined
      this.holdsError = problemOf(e).message
    }
  }
}

/** median returns the value in the middle, or undefined of nothing. */
export function median(values: number[]): number | undefined {
  if (values.length === 0) return undefined
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) / 2)]
}
