// The shared worker: one stream for each namespace serves all tabs of a browser, because HTTP/1.1 allows a browser six
// connections to a server.
import { Hub, type Request } from './hub'

const hub = new Hub()

;(self as unknown as SharedWorkerGlobalScope).onconnect = connection => {
  const port = connection.ports[0]!
  port.onmessage = (message: MessageEvent<Request>) => hub.take(port, message.data, Date.now())
}

setInterval(() => hub.sweep(Date.now()), 30_000)
