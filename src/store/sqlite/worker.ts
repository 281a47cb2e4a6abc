import { isMainThread, parentPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../errors.ts'
import { isDamaged, notPermitted } from './errors.ts'
import { lockDirectory, openFile } from './file.ts'
import { Reserve } from './reserve.ts'
import { type Result, type Submitted, Writer } from './writer.ts'

/** From the main thread to the writer. */
export interface Request {
  /** `Submitted[]` as JSON, which can represent every storable value. If absent, the writer closes the file and ends. */
  readonly batch?: string
  /** The batch is a bulk change, which may free pages. */
  readonly bulk?: boolean
}

/** From the writer to the main thread. */
export type Message =
  /** The file is open. `newestAt` is the time of the newest audit entry, in ms. */
  | { readonly kind: 'open'; readonly newestAt: number; readonly trouble: string | undefined }
  /** The file cannot be opened. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'done'; readonly results: readonly Result[]; readonly trouble: string | undefined }
  | {
      readonly kind: 'trouble'
      readonly what: string
      /** Absent where it is over. */
      readonly cause?: string
      readonly trouble: string | undefined
    }
  | { readonly kind: 'closed' }

/** Runs the writer on its own thread, so that syncs and checkpoints never delay a request. */
async function main(post: (message: Message) => void, directory: string, file: string): Promise<void> {
  const unlock = lockDirectory(directory)
  const opened = await openFile(file)
  const newest = opened.db.prepare('SELECT at FROM audit WHERE id = (SELECT max(id) FROM audit)').get()
  const writer: Writer = new Writer(file, opened, new Reserve(directory), (what, error) =>
    // Posted later, so that it carries the writer's state after what is running now.
    setImmediate(() => post({ kind: 'trouble', what, cause: messageOf(error), trouble: writer.trouble })),
  )
  writer.onRecovered = () =>
    post({ kind: 'trouble', what: 'the database can be written again', trouble: undefined })
  parentPort?.on('message', ({ batch, bulk }: Request) => {
    if (batch !== undefined) {
      const results = writer.apply(JSON.parse(batch) as Submitted[])
      if (bulk === true) writer.giveBackPages()
      post({ kind: 'done', results, trouble: writer.trouble })
      return
    }
    writer.close()
    unlock()
    post({ kind: 'closed' })
    parentPort?.close()
  })
  const newestAt = typeof newest?.['at'] === 'number' ? newest['at'] : 0
  post({ kind: 'open', newestAt, trouble: writer.trouble })
}

function refusalOf(error: unknown, directory: string, file: string): string {
  if (error instanceof StoreRefused) return error.message
  const refusal = notPermitted(directory, error)
  if (refusal !== undefined) return refusal
  return isDamaged(error)
    ? `${file} is damaged or is not a SQLite database (${messageOf(error)}). Restore it from a backup`
    : `${file} cannot be opened: ${messageOf(error)}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

if (!isMainThread && parentPort !== null) {
  const port = parentPort
  const { directory, file } = workerData as { directory: string; file: string }
  main((message) => port.postMessage(message), directory, file).catch((error: unknown) => {
    port.postMessage({ kind: 'refused', message: refusalOf(error, directory, file) } satisfies Message)
    port.close()
  })
}
