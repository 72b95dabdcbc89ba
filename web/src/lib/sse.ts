// A reader of server-sent events that sees what EventSource hides: the status of a refusal, and the comments by which
// the server shows that it is alive.

export interface Message {
  id: string
  event: string
  data: string
}

/** Parser turns the text of a stream into messages. A message that is cut off is dropped. */
export class Parser {
  private rest = ''
  private id = ''
  private event = ''
  private data: string[] = []

  push(text: string): Message[] {
    const found: Message[] = []
    const lines = (this.rest + text).split(/\r\n|\n/)
    this.rest = lines.pop()!
    for (const line of lines) {
      const message = this.line(line)
      if (message) found.push(message)
    }
    return found
  }

  private line(line: string): Message | undefined {
    if (line === '') {
      const message = { id: this.id, event: this.event, data: this.data.join('\n') }
      const empty = !this.id && !this.event && this.data.length === 0
      this.id = this.event = ''
      this.data = []
      return empty ? undefined : message
    }
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'id') this.id = value
    else if (name === 'event') this.event = value
    else if (name === 'data') this.data.push(value)
    return undefined
  }
}
