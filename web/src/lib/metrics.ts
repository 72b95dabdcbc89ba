// What a server says of itself at /metrics, as far as the cluster page shows it.

export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

/** parseMetrics reads Prometheus' text format; lines that are none are left out. */
export function parseMetrics(text: string, wanted: (name: string) => boolean): Sample[] {
  const found: Sample[] = []
  for (const row of text.split('\n')) {
    const m = line.exec(row)
    if (!m || !wanted(m[1]!)) continue
    const labels: Record<string, string> = {}
    for (const l of (m[2] ?? '').matchAll(label)) labels[l[1]!] = l[2]!
    found.push({ name: m[1]!, labels, value: Number(m[3]) })
  }
  return found
}

/** quantile estimates a quantile of the values that a histogram has counted since it was read before. */
export function quantile(q: number, now: Sample[], before: Sample[] = []): number | undefined {
  const old = new Map(before.map(s => [s.labels.le, s.value]))
  const buckets = now
    .map(s => ({ le: s.labels.le === '+Inf' ? Infinity : Number(s.labels.le), count: s.value - (old.get(s.labels.le) ?? 0) }))
    .sort((a, b) => a.le - b.le)
  const total = buckets.at(-1)?.count ?? 0
  if (total <= 0) return undefined
  let under = 0
  let from = 0
  for (const b of buckets) {
    if (b.count >= q * total) {
      if (b.le === Infinity) return from
      return from + ((q * total - under) / Math.max(1, b.count - under)) * (b.le - from)
    }
    under = b.count
    from = b.le
  }
  return from
}

export const valueOf = (samples: Sample[], name: string): number | undefined => samples.find(s => s.name === name)?.value

export const sumOf = (samples: Sample[], name: string): number =>
  samples.reduce((sum, s) => (s.name === name ? sum + s.value : sum), 0)
