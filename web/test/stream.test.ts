import { afterEach, describe, expect, test, vi } from 'vitest'
import { Follower, type Update } from '../src/lib/follow'
import { Hub } from '../src/lib/hub'
import { Parser } from '../src/lib/sse'

describe('the parser', () => {
  const stream = 'retry: 1000\nevent: hello\nid: 180\ndata: {"a":1}\n\n: alive\n\nid: 181.0\ndata: {"b":\ndata: 2}\n\nid: 190\n\n'
  const want = [
    { id: '180', event: 'hello', data: '{"a":1}' },
    { id: '181.0', event: '', data: '{"b":\n2}' },
    { id: '190', event: '', data: '' },
  ]

  test('reads messages', () => expect(new Parser().push(stream)).toEqual(want))
  test('however they are cut', () => {
    for (const size of [1, 2, 3, 7, 20]) {
      const parser = new Parser()
      const found = []
      for (let i = 0; i < stream.length; i += size) found.push(...parser.push(stream.slice(i, i + size)))
      expect(found).toEqual(want)
    }
  })
  test('drops what is cut off', () => expect(new Parser().push('id: 1\ndata: x\n')).toEqual([]))
})

describe('a follower', () => {
  afterEach(() => void (vi.useRealTimers(), vi.unstubAllGlobals()))

  test('tells together what happens together, and all of it before it says that the stream broke', async () => {
    vi.useFakeTimers()
    let stream!: ReadableStreamDefaultController<Uint8Array>
    const body = new ReadableStream<Uint8Array>({ start: c => void (stream = c) })
    vi.stubGlobal('fetch', async () => new Response(body))
    const send = async (text: string) => {
      stream.enqueue(new TextEncoder().encode(text))
      await vi.advanceTimersByTimeAsync(1)
    }
    const heard: Update[] = []
    const follower = new Follower('x', u => void heard.push(u))
    const said = () => heard.splice(0).map(u => (u.type === 'events' ? u.events.map(e => e.revision).join() : u.type))
    await send('event: hello\nid: 1\ndata: {"time":"2026-03-01T04:30:00Z"}\n\n')
    for (const n of [2, 3, 4]) await send(`id: ${n}.0\ndata: {"revision":${n}}\n\n`)
    expect(said()).toEqual(['open'])
    await vi.advanceTimersByTimeAsync(100)
    expect(said()).toEqual(['2,3,4'])
    await send('id: 5.0\ndata: {"revision":5}\n\n')
    stream.close()
    await vi.advanceTimersByTimeAsync(1)
    expect(said()).toEqual(['5', 'broken'])
    follower.stop()
  })
})

describe('the hub', () => {
  function make() {
    const streams: { namespace: string; emit: (u: Update) => void; stopped: boolean; opened?: Update; broken?: Update }[] = []
    const hub = new Hub((namespace, emit) => {
      const stream = { namespace, emit, stopped: false, opened: undefined, broken: undefined, stop: () => void (stream.stopped = true), hurry: () => undefined }
      streams.push(stream)
      return stream
    })
    const tab = () => {
      const heard: Update[] = []
      return { heard, postMessage: (u: Update) => void heard.push(u) }
    }
    return { hub, streams, tab }
  }
  const open: Update = { type: 'open', fresh: true }

  test('has one stream for all tabs of a namespace', () => {
    const { hub, streams, tab } = make()
    const [a, b, c] = [tab(), tab(), tab()]
    hub.take(a, { type: 'follow', namespace: 'x' }, 0)
    hub.take(b, { type: 'follow', namespace: 'x' }, 0)
    hub.take(c, { type: 'follow', namespace: 'y' }, 0)
    expect(streams.map(s => s.namespace)).toEqual(['x', 'y'])
    streams[0]!.emit(open)
    expect([a.heard.length, b.heard.length, c.heard.length]).toEqual([1, 1, 0])
  })

  test('tells who comes later how things are', () => {
    const { hub, streams, tab } = make()
    const [a, b] = [tab(), tab()]
    hub.take(a, { type: 'follow', namespace: 'x' }, 0)
    streams[0]!.opened = open
    hub.take(b, { type: 'follow', namespace: 'x' }, 0)
    hub.take(b, { type: 'follow', namespace: 'x' }, 1) // a sign of life
    expect(b.heard).toEqual([open])
  })

  test('ends a stream when nobody listens', () => {
    const { hub, streams, tab } = make()
    const [a, b] = [tab(), tab()]
    hub.take(a, { type: 'follow', namespace: 'x' }, 0)
    hub.take(b, { type: 'follow', namespace: 'x' }, 100_000)
    hub.take(a, { type: 'leave' }, 100_000)
    expect(streams[0]!.stopped).toBe(false)
    hub.sweep(290_000) // b has given no sign of life for three minutes
    expect(streams[0]!.stopped).toBe(true)
  })

  test('a tab that changes its namespace leaves the other', () => {
    const { hub, streams, tab } = make()
    const a = tab()
    hub.take(a, { type: 'follow', namespace: 'x' }, 0)
    hub.take(a, { type: 'follow', namespace: 'y' }, 0)
    expect(streams.map(s => s.stopped)).toEqual([true, false])
  })
})
