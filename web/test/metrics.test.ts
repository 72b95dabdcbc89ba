import { describe, expect, it } from 'vitest'
import { parseMetrics, quantile, sumOf, valueOf } from '../src/lib/metrics'

const text = `# HELP x y
a_bucket{le="0.1"} 10
a_bucket{le="0.2"} 20
a_bucket{le="+Inf"} 20
b{door="x\\"y",code="ok"} 3
b{door="z"} 4
c 1.5e3
nonsense
`

describe('metrics', () => {
  const all = parseMetrics(text, () => true)
  it('reads names, labels and values', () => {
    expect(all).toHaveLength(6)
    expect(valueOf(all, 'c')).toBe(1_500)
    expect(sumOf(all, 'b')).toBe(7)
  })
  it('estimates a quantile of what came since', () => {
    const buckets = all.filter(s => s.name === 'a_bucket')
    expect(quantile(0.5, buckets)).toBeCloseTo(0.1)
    expect(quantile(0.75, buckets)).toBeCloseTo(0.15)
    expect(quantile(0.99, buckets, buckets)).toBeUndefined()
  })
})
