// How the servers are, and whether they grant anything.
import { api, problemOf } from './api'
import type { Cluster } from './types'

const often = 15_000
const worried = 3_000 // while there is something to warn of

export interface Warning {
  kind: 'quarantine' | 'no majority' | 'disk' | 'not ready'
  text: string
  todo: string
  command?: string
}

class Health {
  cluster = $state.raw<Cluster | undefined>()
  error = $state('')
  warnings = $state.raw<Warning[]>([])

  /** start asks now and again, until the function that it returns is called. */
  start(): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined
    let stopped = false
    const ask = async () => {
      clearTimeout(timer)
      if (document.visibilityState === 'visible') await this.ask()
      clearTimeout(timer)
      if (!stopped) timer = setTimeout(ask, this.warnings.length > 0 ? worried : often)
    }
    void ask()
    document.addEventListener('visibilitychange', ask)
    return () => {
      stopped = true
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', ask)
    }
  }

  private async ask(): Promise<void> {
    try {
      this.cluster = await api.cluster()
      this.error = ''
      this.warnings = warningsOf(this.cluster)
    } catch (e) {
      const problem = problemOf(e)
      this.cluster = undefined
      this.error = problem.message
      // Without the right to look at the cluster, whether it is ready is still said.
      this.warnings = problem.status === 0 || problem.status === 401 ? [] : await unready()
    }
  }
}

/** warningsOf says why nothing, or less, is granted, and what to do. */
export function warningsOf(c: Cluster): Warning[] {
  const found: Warning[] = []
  const away = c.servers.filter(s => s.voter && !s.reachable).map(s => s.name)
  if (!c.confirmed) {
    found.push({
      kind: 'no majority',
      text: c.leader ? `No majority of the servers confirms that ${c.leader} leads: nothing is granted or renewed.` : 'No server leads: nothing is granted or renewed.',
      todo: away.length > 0 ? `Not reachable: ${away.join(', ')}. Start them, or mend the network between the servers.` : 'This lasts a second or two when the lead changes.',
      command: 'leasehold cluster status',
    })
  }
  if (c.quarantine?.active) {
    found.push({
      kind: 'quarantine',
      text: `Nothing is granted yet: the cluster was restored from a backup${c.quarantine.remaining ? `, and waits another ${c.quarantine.remaining}` : ''}, because leases granted after that backup may still be held.`,
      todo: 'It ends by itself. If you are certain that no holder from before is still at work, end it early.',
      command: 'leasehold cluster end-quarantine --reason "…"',
    })
  }
  const full = c.servers.filter(s => s.low_room).map(s => s.name)
  if (full.length > 0) {
    found.push({
      kind: 'disk',
      text: `The disk of ${full.join(', ')} is nearly full: nothing new is granted. Renewals and releases go on.`,
      todo: 'Free some space in the data directory; granting resumes by itself.',
      command: 'leasehold doctor',
    })
  }
  return found
}

async function unready(): Promise<Warning[]> {
  try {
    await api.ready()
    return []
  } catch (e) {
    const problem = problemOf(e)
    if (problem.status === 0) return []
    return [{ kind: 'not ready', text: 'This server is not ready: nothing is granted through it.', todo: 'Ask an operator, or use another server of the cluster.', command: 'leasehold doctor' }]
  }
}

export const health = new Health()
