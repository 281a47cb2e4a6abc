import { Worker } from 'node:worker_threads'
import type { LoadMessage, LoadPlan, LoadResult } from './load.ts'
import { onExit, usageOf } from './processes.ts'

export interface Burst extends LoadResult {
  /** CPU cores that the server used, and its memory at the end; undefined without /proc. */
  readonly cores: number | undefined
  readonly rssMb: number | undefined
}

export interface Loader {
  /** `pid` is the process whose CPU time is measured. Throws if any reply differs from the plan. */
  run(plan: LoadPlan, pid: number | undefined): Promise<Burst>
}

export function startLoader(): Loader {
  const worker = new Worker(new URL('./load.ts', import.meta.url))
  worker.unref()
  onExit(async () => {
    await worker.terminate()
  })
  return {
    async run(plan, pid) {
      let began = usageOf(pid)
      let ended = began
      const result = await ask(worker, plan, (kind) => {
        if (kind === 'begin') began = usageOf(pid)
        else ended = usageOf(pid)
      })
      const cpu = began === undefined || ended === undefined ? undefined : ended.cpuSeconds - began.cpuSeconds
      return { ...result, cores: cpu === undefined ? undefined : cpu / result.seconds, rssMb: ended?.rssMb }
    },
  }
}

function ask(worker: Worker, plan: LoadPlan, onMark: (kind: 'begin' | 'end') => void) {
  const { promise, resolve, reject } = Promise.withResolvers<LoadResult>()
  const onMessage = (message: LoadMessage) => {
    if (message.kind === 'begin' || message.kind === 'end') onMark(message.kind)
    else if (message.kind === 'result') resolve(message.result)
    else reject(new Error(`the load failed: ${message.message}`))
  }
  const onEnd = () => reject(new Error('the load ended early'))
  worker.ref()
  worker.on('message', onMessage)
  worker.once('error', reject)
  worker.once('exit', onEnd)
  worker.postMessage(plan)
  return promise.finally(() => {
    worker.unref()
    worker.off('message', onMessage)
    worker.off('error', reject)
    worker.off('exit', onEnd)
  })
}
