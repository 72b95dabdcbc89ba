// The hub of streams: who listens to which namespace.
import { Follower, type Update } from './follow'

/** follow is repeated as a sign of life: nothing tells a worker that a tab is gone. */
export type Request = { type: 'follow'; namespace: string } | { type: 'leave' } | { type: 'hurry' }

export interface Listener {
  postMessage(update: Update): void
}

// Browsers let the timers of hidden tabs run once a minute.
const maxAbsence = 180_000

interface Place {
  namespace: string
  heard: number
}

export class Hub {
  private places = new Map<Listener, Place>()
  private streams = new Map<string, Pick<Follower, 'opened' | 'broken' | 'stop' | 'hurry'>>()

  constructor(
    private readonly start: (
      namespace: string,
      emit: (update: Update) => void,
    ) => Pick<Follower, 'opened' | 'broken' | 'stop' | 'hurry'> = (n, e) => new Follower(n, e),
  ) {}

  take(listener: Listener, request: Request, now: number): void {
    if (request.type === 'leave') this.places.delete(listener)
    else if (request.type === 'hurry') for (const s of this.streams.values()) s.hurry()
    else this.follow(listener, request.namespace, now)
    this.stopUnused()
  }

  sweep(now: number): void {
    for (const [listener, place] of this.places) if (now - place.heard > maxAbsence) this.places.delete(listener)
    this.stopUnused()
  }

  private follow(listener: Listener, namespace: string, now: number): void {
    const known = this.places.get(listener)?.namespace === namespace
    this.places.set(listener, { namespace, heard: now })
    if (known) return
    const stream = this.streams.get(namespace)
    const first = stream?.opened ?? stream?.broken
    if (first) listener.postMessage(first)
    if (!stream) this.streams.set(namespace, this.start(namespace, update => this.tell(namespace, update)))
  }

  private tell(namespace: string, update: Update): void {
    for (const [listener, place] of this.places) if (place.namespace === namespace) listener.postMessage(update)
  }

  private stopUnused(): void {
    const used = new Set([...this.places.values()].map(p => p.namespace))
    for (const [namespace, stream] of this.streams) {
      if (used.has(namespace)) continue
      stream.stop()
      this.streams.delete(namespace)
    }
  }
}
