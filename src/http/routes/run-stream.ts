import { Readable } from 'node:stream'
import type { RunStateView, RunStream } from '../../core/parts.ts'
import { timestamp, timestampOrNull } from './wire.ts'

/**
 * Server-sent events of one run. A reader who does not read finds the last state when it reads again, and what was said before is
 * forgotten: it holds one state at most.
 */
export function createRunStream(): RunStream & { readonly body: Readable } {
  let waiting: Buffer | undefined
  let isEnded = false
  let wants = true

  const body = new Readable({
    read() {
      wants = true
      flush()
    },
  })

  function flush(): void {
    if (wants && waiting !== undefined) {
      const text = waiting
      waiting = undefined
      wants = body.push(text)
    }
    if (isEnded && waiting === undefined && !body.destroyed) body.push(null)
  }

  // The first byte, so that the headers are sent. Then how soon to come back, in ms.
  body.push('retry: 1000\n\n')
  return {
    body,
    state(view, at) {
      if (isEnded || body.destroyed) return
      waiting = textOf(view, at)
      flush()
    },
    alive(at) {
      if (isEnded || body.destroyed || waiting !== undefined || !wants) return
      wants = body.push(aliveText(at))
    },
    end() {
      if (isEnded || body.destroyed) return
      isEnded = true
      flush()
    },
  }
}

const texts = new WeakMap<RunStateView, Buffer>()

/** The same for all streams of a run. */
function textOf(view: RunStateView, at: number): Buffer {
  const known = texts.get(view)
  if (known !== undefined) return known
  const data = JSON.stringify({
    run: {
      state: view.isRunning ? 'running' : 'ended',
      reason: view.reason,
      dead_at: timestampOrNull(view.deadAt),
    },
    at: timestamp(at),
    credentials: view.credentials,
  })
  const text = Buffer.from(`event: state\ndata: ${data}\n\n`)
  texts.set(view, text)
  return text
}

let alive: { readonly at: number; readonly text: Buffer } | undefined

/** The same for all streams of a round. */
function aliveText(at: number): Buffer {
  if (alive?.at !== at) alive = { at, text: Buffer.from(`event: alive\ndata: {"at":"${timestamp(at)}"}\n\n`) }
  return alive.text
}
