import type { ChildProcess } from 'node:child_process'
import type { LoadMessage, LoadPlan, LoadResult } from './load.ts'
import { forkHere, usageOf } from './processes.ts'

export interface Burst extends LoadResult {
  /** Cores that the server kept busy, and its memory at the end; undefined where there is no /proc. */
  readonly cores: number | undefined
  readonly rssMb: number | undefined
}

export interface Loader {
  /** `pid` is the process whose time is taken. Throws for any reply that is not as planned. */
  run(plan: LoadPlan, pid: number | undefined): Promise<Burst>
}

export function startLoader(): Loader {
  const child = forkHere('load.ts')
  return {
    async run(plan, pid) {
      let began = usageOf(pid)
      let ended = began
      const result = await ask(child, plan, (kind) => {
        if (kind === 'begin') began = usageOf(pid)
        else ended = usageOf(pid)
      })
      const cpu = began === undefined || ended === undefined ? undefined : ended.cpuSeconds - began.cpuSeconds
      return { ...result, cores: cpu === undefined ? undefined : cpu / result.seconds, rssMb: ended?.rssMb }
    },
  }
}

function ask(child: ChildProcess, plan: LoadPlan, onMark: (kind: 'begin' | 'end') => void) {
  return new Promise<LoadResult>((resolve, reject) => {
    const onMessage = (message: LoadMessage) => {
      if (message.kind === 'begin' || message.kind === 'end') {
        onMark(message.kind)
        return
      }
      done()
      if (message.kind === 'result') resolve(message.result)
      else reject(new Error(`the load failed: ${message.message}`))
    }
    const onEnd = () => {
      done()
      reject(new Error('the load ended early'))
    }
    const done = () => {
      child.off('message', onMessage)
      child.off('exit', onEnd)
    }
    child.on('message', onMessage)
    child.once('exit', onEnd)
    child.send(plan)
  })
}
