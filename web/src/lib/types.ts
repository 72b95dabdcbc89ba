// The types of the public API that the console uses. Names and meaning are those of openapi.yaml.

export type State = 'available' | 'leased' | 'breaking' | 'broken' | 'expired'

export interface Lease {
  namespace: string
  resource: string
  id: string
  holder: string
  token: number
  floor: number
  state: State
  slots?: number
  units?: string[]
  ttl: string | null
  hold_limit?: string
  expires: string | null
  remaining_ms: number | null
  acquired: string | null
  available_at: string | null
  session?: string
  labels?: Record<string, string>
  reason?: string
  revision: number
  also?: Lease[]
  warning?: string
  foreign?: string
  door?: string
  note?: string
  noted?: string
}

export interface Ending {
  id: string
  holder: string
  token: number
  how: string
  by?: string
  reason?: string
  at: string
}

export interface Waiter {
  position: number
  priority?: number
  slots?: number
  id: string
  holder: string
  session?: string
  labels?: Record<string, string>
  reason?: string
  since: string
  until: string | null
  forecast?: string
}

export interface Unit {
  name: string
  lease?: string
  holder?: string
  rests?: boolean
}

export interface Usual {
  holds: number
  hold_p50?: string
  hold_p95?: string
  unclean: number
  waits: number
  wait_p50?: string
  wait_p95?: string
  queue?: number
}

export interface Resource {
  namespace: string
  resource: string
  state: State
  capacity: number
  used: number
  units?: Unit[]
  holding?: number
  holders: Lease[]
  waiting: number
  queue?: Waiter[]
  last: Ending | null
  available_at: string | null
  unacknowledged?: Ending
  usual?: Usual
}

export interface List<T> {
  items: T[]
  next?: string
}

export type Kind =
  | 'queued' | 'acquired' | 'changed' | 'breaking' | 'ended' | 'left' | 'session opened' | 'session ended'
  | 'put' | 'deleted' | 'asked' | 'moved' | 'defined' | 'undefined' | 'acknowledged' | 'alarmed' | 'alarm cleared'
  | 'reserved' | 'reservation begun' | 'reservation freed' | 'reservation cancelled'

export interface Event {
  namespace: string
  revision: number
  n: number
  kind: Kind
  how?: string
  at: string
  until?: string
  resource?: string
  id?: string
  holder?: string
  token?: number
  session?: string
  by?: string
  reason?: string
  alarm?: string
  version?: number
}

export interface Hello {
  namespace: string
  position: string
  time: string
}

export interface Hold {
  index?: number
  n?: number
  namespace: string
  resource: string
  id: string
  holder: string
  token: number
  session?: string
  since: string
  until: string
  waited_ms: number
  how: string
  by?: string
  reason?: string
}

export interface Operation {
  index?: number
  n?: number
  at: string
  namespace: string
  verb: string
  outcome: string
  actor?: string
  address?: string
  door?: string
  resource?: string
  id?: string
  holder?: string
  token?: number
  session?: string
  how?: string
  by?: string
  reason?: string
}

export interface Alarm {
  namespace: string
  kind: string
  resource?: string
  id?: string
  holder?: string
  token?: number
  session?: string
  occurrence?: number
  since: string
  last: string
  count: number
  text: string
}

export interface Quarantine {
  active: boolean
  remaining?: string
  ends?: string
  backup?: string
  tokens_above?: number
}

export interface Server {
  id: number
  name: string
  peer: string
  client?: string
  voter: boolean
  version?: string
  oldest_level?: number
  newest_level?: number
  reachable: boolean
  answered: boolean
  heard_by?: string
  heard_ms?: number
  applied?: number
  silent_ms?: number
  low_room?: boolean
  starting?: boolean
}

export interface Cluster {
  cluster: string
  self: string
  leader?: string
  term: number
  confirmed: boolean
  differ?: string[]
  level: number
  next_level?: number
  quarantine?: Quarantine
  servers: Server[]
}

export interface RecordVersion {
  revision: number
  create_revision: number
  version: number
  size: number
  sha256?: string
  written?: string
  holder?: string
  session?: string
  token?: number
  current?: boolean
  deleted?: boolean
}

export interface CanI {
  allowed: boolean
  own?: boolean
  enabled: boolean
  principal?: string
  verb: string
  namespace: string
  path?: string
}

export interface Whoami {
  enabled: boolean
  principal?: string
  groups?: string[]
  credential?: string
  expires?: string
  bindings: { role: string; namespace?: string; prefix?: string }[]
}

// A Session is what GET /console/session answers.
export interface Session {
  access: boolean
  principal?: string
  groups?: string[]
  until?: string
  issuers?: { name: string }[]
  problem?: string
}

export interface Definition {
  namespace: string
  path: string
  capacity?: number
  units?: string[]
  default_ttl?: string
  hold_limit?: string
  revision: number
}

/** A Tool is a program that reaches this server, and what to paste for it. */
export interface Tool {
  id: string
  name: string
  what: string
  door: string
  on: boolean
  text: string
}

/** A Door is a protocol of this server, and who uses it. */
export interface Door {
  name: string
  what: string
  on: boolean
  addresses?: string[]
  connections: number
  clients: { client?: string; connections: number }[]
}

export interface Limit {
  used: number
  allowed: number
}

export type Limits = Record<'leases' | 'sessions' | 'waiters' | 'namespaces', Limit>

/** PoolCounts is a pool over hosts, as lists show it. */
export interface PoolCounts {
  namespace: string
  resource: string
  hosts: number
  total: number
  free: number
  held: number
  out: number
  waiting: number
}

/** A Pool is one page of its units, and the first who wait. */
export interface Pool extends Omit<PoolCounts, 'hosts'> {
  limits?: string[]
  idle?: string
  units: PoolUnit[]
  next?: string
  queue?: PoolWaiter[]
}

export interface PoolUnit {
  name: string
  host?: string
  labels?: Record<string, string>
  state: 'free' | 'held' | 'drained' | 'unfit' | 'taken' | 'resting'
  lease?: string
  holder?: string
  since?: string
  until?: string | null
  reason?: string
  why?: string
  removed?: boolean
  use?: UnitUse
}

/** A UnitUse is what the host of a unit said last. Without it nobody knows whether the unit is used. */
export interface UnitUse {
  at: string
  percent?: number
  memory_mib: number
  strangers?: { pid: number; user?: string; name?: string }[]
  busy_ms?: number
  idle_ms?: number
  idle_since?: string
  asked?: string
}

export interface PoolWaiter {
  id: string
  holder: string
  position: number
  slots?: number
  where?: string
  spread?: boolean
  units?: string[]
  since: string
  why: string
  forecast?: string
  forecast_error?: string
}

/** A Report sums up holds of a pool. Times are of units. */
export interface Report {
  from: string
  until: string
  by: string
  total: ReportRow
  rows: ReportRow[]
}

export interface ReportRow {
  name?: string
  holds: number
  held_ms: number
  busy_ms?: number // left out: nobody reported it
  idle_ms?: number
  waited_ms: number
}

/** A Reservation is a promise of a resource, or of slots of it. A series has a rule, and no times of its own. */
export interface Reservation {
  namespace: string
  id: string
  resource: string
  holder: string
  reason?: string
  slots?: number // left out: all
  where?: string
  spread?: boolean
  from?: string
  until?: string
  state?: 'planned' | 'begun' | 'claimed' | 'in use' | 'over'
  claim_by?: string
  lease?: string
  units?: string[]
  series?: string
  rule?: { every: string; at: string; zone: string; length: string; until?: string }
}
