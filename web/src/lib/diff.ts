// The difference between two texts, by lines.

export interface DiffLine {
  sign: ' ' | '+' | '-' | '…' // … stands for lines that are left out, and text says how many
  text: string
}

const context = 3
const tooMany = 1_500 // edits; beyond it the two texts have little in common

/** diff returns the changed lines with three lines around each; an empty list if the texts are equal. */
export function diff(from: string, to: string): DiffLine[] {
  if (from === to) return []
  const a = from.split('\n')
  const b = to.split('\n')
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const middle = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail))
  const same = (text: string): DiffLine => ({ sign: ' ', text })
  return fold([...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)])
}

// Myers' algorithm: the shortest way from a to b, by the furthest point that d edits reach on each diagonal.
function edits(a: string[], b: string[]): DiffLine[] {
  const most = Math.min(a.length + b.length, tooMany)
  const middle = most + 1
  const reach = new Int32Array(2 * most + 3)
  const trace: Int32Array[] = [] // before d edits: the diagonals from -d-1 to d+1
  for (let d = 0; d <= most; d++) {
    trace.push(reach.slice(middle - d - 1, middle + d + 2))
    for (let k = -d; k <= d; k += 2) {
      const left = reach[middle + k - 1]!
      const right = reach[middle + k + 1]!
      let x = k === -d || (k !== d && left < right) ? right : left + 1
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++
      reach[middle + k] = x
      if (x >= a.length && x - k >= b.length) return walk(a, b, trace)
    }
  }
  return [...a.map(text => ({ sign: '-' as const, text })), ...b.map(text => ({ sign: '+' as const, text }))]
}

function walk(a: string[], b: string[], trace: Int32Array[]): DiffLine[] {
  const lines: DiffLine[] = []
  let x = a.length
  let y = b.length
  for (let d = trace.length - 1; d >= 0; d--) {
    const at = (k: number) => trace[d]![k + d + 1]!
    const k = x - y
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1))
    const before = down ? k + 1 : k - 1
    const fromX = at(before)
    while (x > fromX && y > fromX - before && x > 0 && y > 0) {
      lines.push({ sign: ' ', text: a[--x]! })
      y--
    }
    if (d === 0) break
    if (down) lines.push({ sign: '+', text: b[--y]! })
    else lines.push({ sign: '-', text: a[--x]! })
  }
  return lines.reverse()
}

// fold leaves out what is far from any change.
function fold(lines: DiffLine[]): DiffLine[] {
  const near = new Set<number>()
  lines.forEach((line, i) => {
    if (line.sign === ' ') return
    for (let j = i - context; j <= i + context; j++) near.add(j)
  })
  const shown: DiffLine[] = []
  let left = 0
  const rest = () => {
    if (left > 0) shown.push({ sign: '…', text: left === 1 ? '1 line' : `${left} lines` })
    left = 0
  }
  lines.forEach((line, i) => {
    if (!near.has(i)) return void left++
    rest()
    shown.push(line)
  })
  rest()
  return shown
}
