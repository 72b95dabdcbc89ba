// The rows that the table shows: filtered and sorted as the address says, not more often than an eye can follow.
import { clock } from './clock.svelte'
import { isError, parseFilter } from './filter'
import type { Live } from './live.svelte'
import { router } from './router.svelte'
import type { Row } from './rows'
import { Order, parseSort } from './sort'

const many = 2_000

export class View {
  rows = $state.raw<Row[]>([])
  readonly text = $derived(router.query.get('q') ?? '')
  readonly parsed = $derived(parseFilter(this.text))
  readonly error = $derived(isError(this.parsed) ? this.parsed : undefined)
  readonly sort = $derived(parseSort(router.query.get('sort')))
  private filter = $derived(isError(this.parsed) ? undefined : this.parsed)
  private seconds = $derived(this.filter?.timed ? clock.now : 0)
  private order: Order | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private at = 0

  constructor(private readonly live: Live) {
    $effect(() => {
      void this.live.version
      void this.seconds
      this.soon()
    })
    $effect(() => {
      void [this.filter, this.sort]
      this.order = undefined
      this.refresh()
    })
    $effect(() => () => clearTimeout(this.timer))
  }

  private soon(): void {
    if (this.timer !== undefined) return
    const pause = this.live.rows.size > many ? 250 : 50
    this.timer = setTimeout(() => this.refresh(), Math.max(0, this.at + pause - performance.now()))
  }

  private refresh(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    this.at = performance.now()
    const filter = this.filter
    const now = clock.read()
    if (filter?.timed) this.order = undefined
    this.order ??= new Order(this.sort, row => filter?.match(row, now) ?? true)
    this.rows = this.order.update(this.live.rows)
  }
}
