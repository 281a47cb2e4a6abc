import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { createBallast, lockDirectory, openFile } from './file.ts'
import { type Result, type Submitted, Writer } from './writer.ts'

/** What the two threads say to each other. */
export interface Request {
  /** `Submitted[]` as JSON, which holds every value that can be stored. Absent: close the file and end. */
  readonly batch?: string
}

export type Message =
  /** The file is open; `newestAt` is the time of the newest audit entry, in ms. */
  | { readonly kind: 'open'; readonly newestAt: number; readonly trouble: string | undefined }
  /** It cannot be opened. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'done'; readonly results: readonly Result[]; readonly trouble: string | undefined }
  | {
      readonly kind: 'trouble'
      readonly what: string
      readonly cause: string
      readonly trouble: string | undefined
    }
  | { readonly kind: 'closed' }

/** The thread that writes: syncs and checkpoints never hold up a request on the other one. */
async function main(say: (message: Message) => void, directory: string, file: string): Promise<void> {
  const unlock = lockDirectory(directory)
  const opened = await openFile(file)
  const newest = opened.db.prepare('SELECT at FROM audit WHERE id = (SELECT max(id) FROM audit)').get()
  const writer: Writer = new Writer(file, opened, createBallast(directory), (what, error) =>
    setImmediate(() =>
      say({
        kind: 'trouble',
        what,
        cause: error instanceof Error ? error.message : String(error),
        trouble: writer.trouble,
      }),
    ),
  )
  writer.onRecovered = () =>
    say({ kind: 'trouble', what: 'the database can be written again', cause: '', trouble: undefined })
  parentPort?.on('message', ({ batch }: Request) => {
    if (batch !== undefined) {
      const results = writer.apply(JSON.parse(batch) as Submitted[])
      say({ kind: 'done', results, trouble: writer.trouble })
      return
    }
    writer.close()
    unlock()
    say({ kind: 'closed' })
    parentPort?.close()
  })
  const newestAt = typeof newest?.['at'] === 'number' ? newest['at'] : 0
  say({ kind: 'open', newestAt, trouble: writer.trouble })
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort
  const { directory, file } = workerData as { directory: string; file: string }
  main((message) => port.postMessage(message), directory, file).catch((error: unknown) => {
    port.postMessage({
      kind: 'refused',
      message: error instanceof Error ? error.message : String(error),
    } satisfies Message)
    port.close()
  })
}
