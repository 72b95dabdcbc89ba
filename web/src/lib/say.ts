// What happened, in a sentence.
import type { Event } from './types'

export interface Sentence {
  holder?: string
  text: string // between the holder and the resource
  resource?: string
  more: string
  bad: boolean
}

/** say puts an event into words. */
export function say(e: Event): Sentence {
  const by = e.by ? ` by ${e.by}` : ''
  const why = e.reason ? `: ${e.reason}` : ''
  const s = (text: string, more = '', bad = false): Sentence => ({ holder: e.holder, resource: e.resource, text, more, bad })
  switch (e.kind) {
    case 'queued':
      return s('waits for')
    case 'acquired':
      return s('acquired')
    case 'changed':
      return s('took over')
    case 'breaking':
      return s('is being made to give up', by + why, true)
    case 'left':
      return s('stopped waiting for', e.how && e.how !== 'withdrawn' ? `: ${e.how}` : '')
    case 'asked':
      return s('was asked to release', by + why)
    case 'acknowledged':
      return { text: 'the unclean end was acknowledged:', resource: e.resource, more: by + why, bad: false }
    case 'alarmed':
      return { text: `alarm ${e.alarm ?? ''}:`, resource: e.resource, more: why, bad: true }
    case 'ended':
      return ended(e, s, by + why)
    default:
      return s(e.kind)
  }
}

function ended(e: Event, s: (text: string, more?: string, bad?: boolean) => Sentence, byWhy: string): Sentence {
  switch (e.how) {
    case 'released':
    case 'session closed':
      return s('released')
    case 'broken':
      return s('lost', `: broken${byWhy}`, true)
    case 'changed':
      return s('handed over')
    default:
      return s('lost', `: ${e.how ?? 'ended'} without release`, true)
  }
}
