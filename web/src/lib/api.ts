// The public API, as the console calls it.
import type {
  Alarm, CanI, Cluster, Definition, Door, Ending, Hold, Lease, Limits, List, Operation, Pool, PoolCounts, Quarantine, RecordVersion, Report, Reservation, Resource, Session, Tool, Waiter, Whoami,
} from './types'

/** A Problem is an answer of the server that is an error; status 0 if there was no answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(detail)
  }

  /** transient reports whether the same request may succeed later. */
  get transient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500
  }
}

/** problemOf makes anything that was thrown a Problem. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  return new Problem(0, 'unavailable', error instanceof Error ? error.message : String(error))
}

export type Query = Record<string, string | number | boolean | string[] | undefined>

export interface Call {
  method?: string
  namespace?: string // left out: a request about the cluster or about access
  query?: Query
  body?: unknown
  accept?: string
  timeout?: number
}

let unauthenticated: () => void = () => undefined

/** onUnauthenticated says what to do when the server wants to know who asks. */
export function onUnauthenticated(f: () => void): void {
  unauthenticated = f
}

/** send makes a request and returns the answer, or throws a Problem. */
export async function send(path: string, call: Call = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: call.accept ?? 'application/json' }
  if (call.body !== undefined) headers['Content-Type'] = 'application/json'
  let answer: Response
  try {
    answer = await fetch(path + search(call), {
      method: call.method ?? 'GET',
      headers,
      body: call.body === undefined ? undefined : JSON.stringify(call.body),
      cache: 'no-store',
      signal: AbortSignal.timeout(call.timeout ?? 15_000),
    })
  } catch {
    throw new Problem(0, 'unavailable', 'the server cannot be reached')
  }
  if (answer.ok) return answer
  const body = (await answer.json().catch(() => ({}))) as Record<string, unknown>
  if (answer.status === 401) unauthenticated()
  const detail = typeof body.detail === 'string' ? body.detail : `the server answered ${answer.status}`
  throw new Problem(answer.status, typeof body.code === 'string' ? body.code : '', detail, body)
}

function search(call: Call): string {
  const query = new URLSearchParams()
  if (call.namespace !== undefined) query.set('namespace', call.namespace)
  for (const [name, value] of Object.entries(call.query ?? {})) {
    if (Array.isArray(value)) for (const v of value) query.append(name, v)
    else if (value !== undefined && value !== '' && value !== false) query.set(name, String(value))
  }
  const text = query.toString()
  return text ? '?' + text : ''
}

async function get<T>(path: string, call: Call = {}): Promise<T> {
  return (await (await send(path, call)).json()) as T
}

const post = <T>(path: string, namespace: string | undefined, body: unknown): Promise<T> =>
  get<T>(path, { method: 'POST', namespace, body })

/** escapePath makes a name part of a URL; slashes stay as they are. */
export function escapePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/** At is an answer with the revision of the namespace that it was read at. */
export interface At<T> {
  value: T
  revision: number
}

async function at<T>(path: string, call: Call): Promise<At<T>> {
  const answer = await send(path, call)
  return { value: (await answer.json()) as T, revision: Number(answer.headers.get('Leasehold-Revision') ?? 0) }
}

export interface BreakRequest {
  id?: string
  resource?: string
  token?: number
  all?: boolean
  period?: string
  by?: string
  reason: string
}

export const api = {
  resources: (namespace: string, after?: string, limit = 1_000) =>
    at<List<Resource>>('/v1/resources', { namespace, query: { after, limit } }),
  resource: (namespace: string, path: string) =>
    at<Resource>('/v1/resources/' + escapePath(path), { namespace }),
  alarms: (namespace: string, query: Query = {}) => get<List<Alarm>>('/v1/alarms', { namespace, query }),
  acknowledgeAlarm: (namespace: string, body: unknown) => post<unknown>('/v1/alarms/acknowledge', namespace, body),
  holds: (namespace: string, query: Query = {}) => get<List<Hold>>('/v1/holds', { namespace, query }),
  audit: (namespace: string, query: Query = {}) => get<List<Operation>>('/v1/audit', { namespace, query }),
  definitions: (namespace: string, after?: string) => get<List<Definition>>('/v1/definitions', { namespace, query: { after, limit: 1_000 } }),
  pools: (namespace: string, after?: string) => get<List<PoolCounts>>('/v1/pools', { namespace, query: { after, limit: 1_000 } }),
  pool: (namespace: string, path: string, query: Query = {}) => get<Pool>('/v1/pools/' + escapePath(path), { namespace, query }),
  report: (namespace: string, path: string, query: Query) => get<Report>('/v1/reports/' + escapePath(path), { namespace, query, timeout: 60_000 }),
  /** drain keeps units from being granted; without a reason why it lets them be granted again. */
  drain: (namespace: string, path: string, body: { units: string[]; why?: string; by?: string }) =>
    get<unknown>('/v1/pools/' + escapePath(path), { method: 'PATCH', namespace, body }),
  reservations: (namespace: string, query: Query) => get<List<Reservation>>('/v1/reservations', { namespace, query }),
  series: (namespace: string, after?: string) => get<List<Reservation>>('/v1/series', { namespace, query: { after, limit: 1_000 } }),
  cancelReservation: (namespace: string, id: string, query: { by?: string; reason: string }) =>
    send('/v1/reservations/' + encodeURIComponent(id), { method: 'DELETE', namespace, query }),
  namespaces: (after?: string) => get<List<{ namespace: string }>>('/v1/namespaces', { query: { after, limit: 1_000 } }),
  limits: () => get<Limits>('/v1/cluster/limits'),
  doors: () => get<List<Door>>('/v1/cluster/doors'),
  connect: (namespace: string) => get<List<Tool>>('/v1/connect', { namespace, query: { origin: location.origin } }),
  metrics: async () => (await send('/metrics', { accept: 'text/plain' })).text(),
  cluster: () => get<Cluster>('/v1/cluster'),
  quarantine: () => get<Quarantine>('/v1/cluster/quarantine'),
  canI: (namespace: string, verb: string, path?: string, id?: string) =>
    get<CanI>('/v1/access/can-i', { namespace, query: { verb, path, id } }),
  whoami: () => get<Whoami>('/v1/access/whoami'),
  /** hasRecord asks by a list, because what is not there is no error in a list. */
  hasRecord: async (namespace: string, path: string) => {
    const list = await get<List<{ path: string }>>('/v1/records', { namespace, query: { from: path, limit: 1, keys: true } })
    return list.items[0]?.path === path
  },
  versions: (namespace: string, path: string) =>
    get<List<RecordVersion>>('/v1/versions/' + escapePath(path), { namespace, query: { limit: 20 } }),
  recordText: async (namespace: string, path: string, version?: number) =>
    (await send('/v1/records/' + escapePath(path), {
      namespace, query: { version }, accept: 'application/octet-stream',
    })).text(),
  ask: (namespace: string, body: { resource: string; message: string; by?: string }) =>
    post<Lease>('/v1/ask', namespace, body),
  break: (namespace: string, body: BreakRequest) => post<Lease>('/v1/break', namespace, body),
  move: (namespace: string, body: { id: string; priority: number; by?: string; reason?: string }) =>
    post<Waiter>('/v1/move', namespace, body),
  acknowledge: (namespace: string, ending: Ending & { resource: string }, by: string, reason: string) =>
    post<unknown>('/v1/acknowledge', namespace, { resource: ending.resource, token: ending.token, by, reason }),
  session: () => get<Session>('/console/session'),
  signIn: (token: string) => post<Session>('/console/session', undefined, { token }),
  /** visitIssuer begins a sign-in with an issuer, and returns where to send the browser. */
  visitIssuer: (issuer: string, to: string) => post<{ location: string }>('/console/oidc', undefined, { issuer, to }),
  signOut: () => send('/console/session', { method: 'DELETE' }),
  ready: async () => (await send('/readyz?verbose', { accept: 'text/plain' })).text(),
}
