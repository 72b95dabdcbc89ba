// Durations and moments, as the API writes them and as people read them.

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const micro: Record<string, number> = { ns: 1e-6, us: 1e-3, 'µs': 1e-3 }

/** parseDuration reads "90s", "1h30m" or "2d" and returns milliseconds, or undefined if it is none. */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  const part = /(\d+(?:\.\d+)?)(ms|us|µs|ns|s|m|h|d)/gy
  let total = 0
  let at = 0
  for (let m = part.exec(text); m; m = part.exec(text)) {
    total += Number(m[1]) * (units[m[2]!] ?? micro[m[2]!]!)
    at = part.lastIndex
  }
  return at > 0 && at === text.length ? total : undefined
}

/** formatDuration writes the two largest units of a duration: "22s", "6m 50s", "1h 5m", "3d 4h". */
export function formatDuration(ms: number): string {
  if (ms < 0) return '0s'
  if (ms < 1_000) return `${Math.round(ms)}ms`
  if (ms < 10_000 && ms % 1_000 !== 0) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`
  const s = Math.floor(ms / 1_000)
  if (s < 60) return `${s}s`
  if (s < 3_600) return `${Math.floor(s / 60)}m ${s % 60}s`
  if (s < 86_400) return `${Math.floor(s / 3_600)}h ${Math.floor((s % 3_600) / 60)}m`
  return `${Math.floor(s / 86_400)}d ${Math.floor((s % 86_400) / 3_600)}h`
}

/** formatLeft writes a countdown: whole seconds, and tenths in the last five. */
export function formatLeft(ms: number): string {
  if (ms <= 0) return '0s'
  if (ms < 5_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)}s`
  return formatDuration(Math.floor(ms / 1_000) * 1_000)
}

/** formatAgo writes how long something takes or took, without tenths. */
export function formatAgo(ms: number): string {
  return formatDuration(Math.max(0, Math.floor(ms / 1_000) * 1_000)).replace(/^0ms$/, '0s')
}

/** apiDuration writes milliseconds as the API and the command line read them. */
export function apiDuration(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${Math.round(ms)}ms`
}

/** formatClock writes the time of day, with the date unless it is the same day as now. */
export function formatClock(at: number, now: number): string {
  const d = new Date(at)
  const two = (n: number) => String(n).padStart(2, '0')
  const time = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
  if (d.toDateString() === new Date(now).toDateString()) return time
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${time}`
}

/** moment reads a time of the API, in milliseconds since 1970; undefined if there is none. */
export function moment(text: string | null | undefined): number | undefined {
  if (!text) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : at
}
