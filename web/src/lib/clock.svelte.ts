// The server's clock, as this browser knows it. Countdowns are drawn from it, and stop when nobody looks or when the
// stream is broken: what is shown is then as of that moment.

const coarse = 1_000
const fine = 100

class Clock {
  /** now is the server's time in milliseconds. It moves once a second. */
  now = $state(Date.now())
  /** fine moves ten times a second while somebody needs it. */
  fine = $state(Date.now())
  private offset = 0
  private frozen: number | undefined
  private wants = 0
  private slow: ReturnType<typeof setInterval> | undefined
  private quick: ReturnType<typeof setInterval> | undefined

  /** set is told what the server's clock said at a moment of the browser's. */
  set(server: number, local = Date.now()): void {
    this.offset = server - local
    this.tick()
  }

  /** read returns the server's time at this moment. */
  read(): number {
    return this.frozen ?? Date.now() + this.offset
  }

  freeze(): void {
    this.frozen ??= this.read()
    this.tick()
  }

  thaw(): void {
    this.frozen = undefined
    this.tick()
  }

  start(): void {
    const run = () => {
      clearInterval(this.slow)
      clearInterval(this.quick)
      if (document.visibilityState !== 'visible') return
      this.tick()
      this.slow = setInterval(() => this.tick(), coarse)
      this.quick = setInterval(() => void (this.wants > 0 && (this.fine = this.read())), fine)
    }
    document.addEventListener('visibilitychange', run)
    run()
  }

  /** want asks for the fine clock until the function that it returns is called. */
  want(): () => void {
    this.wants++
    this.fine = this.read()
    return () => void this.wants--
  }

  private tick(): void {
    this.now = this.read()
    this.fine = this.now
  }
}

export const clock = new Clock()
