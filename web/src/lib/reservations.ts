// Reservations on a calendar: days of the browser's clock, with bars that overlap nothing on their track.
import { api } from './api'
import { count, short } from './text'
import { moment } from './time'
import type { Reservation } from './types'

/** calendarDays is how many days the calendar shows. */
export const calendarDays = 14

const pageSize = 1_000
const most = 5_000 // a resource has fewer

/** readReservations reads those of a resource that share time with a span. */
export async function readReservations(namespace: string, resource: string, from: number, until: number): Promise<Reservation[]> {
  const found: Reservation[] = []
  const span = { from: new Date(from).toISOString(), until: new Date(until).toISOString() }
  let after: string | undefined
  do {
    const page = await api.reservations(namespace, { resource, ...span, after, limit: pageSize })
    found.push(...page.items)
    after = page.next
  } while (after && found.length < most)
  return found
}

/** dayAfter is midnight of the day so many days after a moment's. Days are not all of 24 hours. */
export function dayAfter(at: number, days: number): number {
  const d = new Date(at)
  return new Date(d.getFullYear(), d.getMonth(), d.getDate() + days).getTime()
}

/** dayOf reads a day such as 2026-11-20, as nameOfDay writes it; undefined if it is none. */
export function dayOf(text: string): number | undefined {
  const m = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)
  if (!m) return undefined
  const at = new Date(Number(m[1]), Number(m[2]) - 1, Number(m[3])).getTime()
  return nameOfDay(at) === text ? at : undefined
}

const two = (n: number) => String(n).padStart(2, '0')

export function nameOfDay(at: number): string {
  const d = new Date(at)
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`
}

/** A Piece is what of a reservation lies in one day. Left and right are parts of that day, by the clock on the wall. */
export interface Piece {
  of: Reservation
  from: number
  to: number
  left: number
  right: number
}

export interface Day {
  begins: number
  ends: number
  tracks: Piece[][]
}

/** toDays puts reservations into the days that they touch. */
export function toDays(list: Reservation[], first: number, days: number): Day[] {
  return Array.from({ length: days }, (_, i) => {
    const begins = dayAfter(first, i)
    const ends = dayAfter(first, i + 1)
    return { begins, ends, tracks: pack(list.flatMap(r => piece(r, begins, ends))) }
  })
}

function piece(of: Reservation, begins: number, ends: number): Piece[] {
  const from = Math.max(begins, moment(of.from) ?? Infinity)
  const to = Math.min(ends, moment(of.until) ?? -Infinity)
  if (from >= to) return []
  return [{ of, from, to, left: partOfDay(from), right: to === ends ? 1 : partOfDay(to) }]
}

/** partOfDay is how much of its day has passed, by the clock on the wall: 09:00 has one place, also when clocks change. */
export function partOfDay(at: number): number {
  const d = new Date(at)
  return (d.getHours() * 3_600 + d.getMinutes() * 60 + d.getSeconds()) / 86_400
}

function pack(pieces: Piece[]): Piece[][] {
  const tracks: Piece[][] = []
  for (const p of pieces.sort((a, b) => a.from - b.from || b.to - a.to)) {
    const free = tracks.find(t => t.at(-1)!.to <= p.from)
    if (free) free.push(p)
    else tracks.push([p])
  }
  return tracks
}

/** hour writes the time of day, to the minute. */
export function hour(at: number): string {
  const d = new Date(at)
  return `${two(d.getHours())}:${two(d.getMinutes())}`
}

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** day writes a day as people say it: "Wed 18 Nov". */
export function day(at: number): string {
  const d = new Date(at)
  return `${weekdays[d.getDay()]} ${d.getDate()} ${months[d.getMonth()]}`
}

/** span writes from when to when, and the second day if there is one. */
export function span(r: Reservation): string {
  const from = moment(r.from)
  const until = moment(r.until)
  if (from === undefined || until === undefined) return ''
  const ends = until === dayAfter(from, 1) ? '24:00' : nameOfDay(from) === nameOfDay(until) ? hour(until) : `${day(until)}, ${hour(until)}`
  return `${day(from)}, ${hour(from)} – ${ends}`
}

/** share says how much of the resource is reserved, and size the same without conditions. */
export function share(r: Reservation, one: string): string {
  return size(r, one) + (r.where ? ` with ${short(r.where, 60)}` : '')
}

export function size(r: Reservation, one: string): string {
  return r.slots ? count(r.slots, one) : 'all of it'
}

/** recurs says when a series recurs. */
export function recurs(series: Reservation | undefined): string {
  const rule = series?.rule
  if (!rule) return ''
  return `${rule.every === 'day' ? 'every day' : rule.every} at ${rule.at}, ${rule.zone}`
}
