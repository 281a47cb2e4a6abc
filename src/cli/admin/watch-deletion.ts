import { pause } from '../../client/abort.ts'
import type { Client } from '../../client/client.ts'
import { MayflyError } from '../../client/errors.ts'
import type { BackendDeletion } from '../../client/wire.ts'
import type { Context } from '../frame/verb.ts'
import { isAuditFull } from './exact-name.ts'

const POLL_MS = 1_000

/** Waits until the server has ended the last credential of the backend, and shows how many remain. */
export async function watchDeletion(
  { out, signal }: Pick<Context, 'out' | 'signal'>,
  client: Client,
  { name, since, remaining }: BackendDeletion,
): Promise<void> {
  out.note('The server deletes the backend even if you interrupt this command.')
  for (let left: number | undefined = remaining; left !== undefined; ) {
    out.progress(`Ending its credentials: ${left} left`)
    await pause(POLL_MS, signal)
    const deletion = await client.admin.backends.show(name, { signal }).then(
      (backend) => backend.deletion,
      (error: unknown) => {
        if (error instanceof MayflyError && error.code === 'backend_not_found') return undefined
        if (!isAuditFull(error)) throw error
        // Its disk is full. It goes on, and may say so again.
        return { name, since, remaining: left ?? remaining }
      },
    )
    // Another one may have been created under this name since.
    left = deletion?.since === since ? deletion.remaining : undefined
  }
}
