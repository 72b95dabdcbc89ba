// The tab's end of the stream.
import type { Update } from './follow'
import { Hub, type Request } from './hub'

const signOfLife = 20_000

/** follow listens to a namespace until the function that it returns is called. */
export function follow(namespace: string, listen: (update: Update) => void): () => void {
  const send = connect(listen)
  const say = () => send({ type: 'follow', namespace })
  const hurry = () => send({ type: 'hurry' })
  const leave = () => send({ type: 'leave' })
  const show = () => void (document.visibilityState === 'visible' && (say(), hurry()))
  say()
  const timer = setInterval(say, signOfLife)
  addEventListener('online', hurry)
  addEventListener('pagehide', leave)
  addEventListener('pageshow', say)
  document.addEventListener('visibilitychange', show)
  return () => {
    clearInterval(timer)
    removeEventListener('online', hurry)
    removeEventListener('pagehide', leave)
    removeEventListener('pageshow', say)
    document.removeEventListener('visibilitychange', show)
    leave()
  }
}

function connect(listen: (update: Update) => void): (request: Request) => void {
  try {
    const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'leasehold' })
    let heard = false
    worker.port.onmessage = (message: MessageEvent<Update>) => {
      heard = true
      listen(message.data)
    }
    // A worker that cannot be loaded gives an error and never speaks: the tab then has a stream of its own.
    let local: ((request: Request) => void) | undefined
    let last: Request | undefined
    worker.onerror = () => {
      if (heard || local) return
      local = alone(listen)
      if (last) local(last)
    }
    return request => {
      last = request
      if (local) local(request)
      else worker.port.postMessage(request)
    }
  } catch {
    return alone(listen)
  }
}

function alone(listen: (update: Update) => void): (request: Request) => void {
  const hub = new Hub()
  const listener = { postMessage: listen }
  return request => hub.take(listener, request, Date.now())
}
