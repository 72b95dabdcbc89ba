// One watch of one namespace that reconnects and resumes by itself. It runs in the shared worker, or in the tab where
// the browser has none.
import { Parser, type Message } from './sse'
import type { Event, Hello } from './types'

export type Update =
  /** The stream is open. If fresh, it does not continue what came before: read everything again. */
  | { type: 'open'; fresh: boolean; time?: number; heard?: number }
  | { type: 'events'; events: Event[] }
  | { type: 'broken'; since: number; status: number; detail: string }

const together = 100 // ms: what happens within it is told at once, however much it is
const maxSilence = 45_000 // three heartbeats of the server
const backoff = [250, 1_000, 2_000, 5_000]

export class Follower {
  opened: Update | undefined // what a new listener has to hear first
  broken: Update | undefined
  private last = '' // the position to resume from
  private failures = 0
  private abort = new AbortController()
  private stopped = false
  private untold: Event[] = []
  private telling: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly namespace: string,
    private readonly emit: (update: Update) => void,
  ) {
    void this.run()
  }

  stop(): void {
    this.stopped = true
    clearTimeout(this.telling)
    this.abort.abort()
  }

  /** hurry tries again now, as when the browser is online again. */
  hurry(): void {
    if (!this.broken) return
    this.failures = 0
    this.wake?.()
  }

  private wake: (() => void) | undefined

  private async run(): Promise<void> {
    while (!this.stopped) {
      const error = await this.connect().then(
        () => new Refusal(0, 'the server ended the stream'),
        (e: unknown) => (e instanceof Refusal ? e : new Refusal(0, 'the server cannot be reached')),
      )
      if (this.stopped) return
      this.fail(error)
      const pause = backoff[Math.min(this.failures++, backoff.length - 1)]! * (0.75 + Math.random() / 2)
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, pause)
        this.wake = () => (clearTimeout(timer), resolve())
      })
    }
  }

  private fail(error: Refusal): void {
    const since = this.broken?.type === 'broken' ? this.broken.since : Date.now()
    this.opened = undefined
    this.tell()
    this.broken = { type: 'broken', since, status: error.status, detail: error.message }
    this.emit(this.broken)
  }

  private async connect(): Promise<void> {
    this.abort = new AbortController()
    let silence = setTimeout(() => this.abort.abort(), maxSilence)
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' }
      if (this.last) headers['Last-Event-ID'] = this.last
      const answer = await fetch('/v1/watch?namespace=' + encodeURIComponent(this.namespace), {
        headers,
        signal: this.abort.signal,
        cache: 'no-store',
      })
      if (!answer.ok || !answer.body) throw await refusal(answer)
      const parser = new Parser()
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        clearTimeout(silence)
        silence = setTimeout(() => this.abort.abort(), maxSilence)
        this.take(parser.push(value))
      }
    } finally {
      clearTimeout(silence)
      this.abort.abort() // a stream that gave an error may still be open
    }
  }

  private take(messages: Message[]): void {
    for (const m of messages) {
      if (m.event === 'hello') this.hello(JSON.parse(m.data) as Hello)
      else if (m.event === 'gone') this.last = ''
      else if (m.event === '' && m.data) this.untold.push(JSON.parse(m.data) as Event)
      if (m.id && m.event !== 'gone') this.last = m.id
    }
    if (this.untold.length > 0) this.telling ??= setTimeout(() => this.tell(), together)
  }

  private tell(): void {
    clearTimeout(this.telling)
    this.telling = undefined
    const events = this.untold
    this.untold = []
    if (events.length > 0) this.emit({ type: 'events', events })
  }

  private hello(hello: Hello): void {
    this.tell()
    const fresh = this.last === ''
    this.failures = 0
    this.broken = undefined
    const open: Update = { type: 'open', fresh, time: Date.parse(hello.time), heard: Date.now() }
    this.opened = { ...open, fresh: true }
    this.emit(open)
  }
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

async function refusal(answer: Response): Promise<Refusal> {
  const problem = (await answer.json().catch(() => ({}))) as { detail?: string }
  return new Refusal(answer.status, problem.detail ?? `the server answered ${answer.status}`)
}
