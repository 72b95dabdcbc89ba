// Names are data: they may hold anything. These functions make them safe and plain to read.

const hidden = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

/**
 * plain shows control characters, and those that turn or hide text, as escapes: a name then looks like what it is,
 * and cannot reorder the text around it.
 */
export function plain(name: string): string {
  return name.replace(hidden, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'))
}

/** short cuts a long text in the middle, where a beginning and an end still tell it apart. */
export function short(name: string, most = 80): string {
  const text = plain(name)
  if (text.length <= most) return text
  const half = Math.floor((most - 1) / 2)
  return text.slice(0, most - 1 - half) + '…' + text.slice(text.length - half)
}

/** hue gives a holder its colour: the same everywhere, in every session of every browser. */
export function hue(holder: string): number {
  let h = 2166136261
  for (let i = 0; i < holder.length; i++) h = Math.imul(h ^ holder.charCodeAt(i), 16777619)
  h ^= h >>> 15
  h = Math.imul(h, 0x2c1b3c6d)
  h ^= h >>> 12
  return (h >>> 0) % 360
}

/** clientName shortens what a client says of itself: a browser becomes its name and version, a program its first word. */
export function clientName(agent: string): string {
  if (!agent.startsWith('Mozilla/')) return short(agent.split(' ')[0]!, 40)
  // Most browsers also name those that they resemble: the first of these that is there is the one.
  for (const [pattern, name] of browsers) {
    const version = pattern.exec(agent)?.[1]
    if (version) return `${name} ${version}`
  }
  return 'browser'
}

const browsers: [RegExp, string][] = [
  [/ Edg\w*\/(\d+)/, 'Edge'],
  [/ OPR\/(\d+)/, 'Opera'],
  [/ Firefox\/(\d+)/, 'Firefox'],
  [/ HeadlessChrome\/(\d+)/, 'Headless Chrome'],
  [/ Chrom(?:e|ium)\/(\d+)/, 'Chrome'],
  [/ Version\/(\d+)[\d.]* .*Safari\//, 'Safari'],
]

/** shell quotes a word for a POSIX shell, if it needs it. */
export function shell(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** count writes "1 lease" or "2 leases", with separators in large numbers. */
export function count(n: number, one: string, many = one + 's'): string {
  return `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`
}
