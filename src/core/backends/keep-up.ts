import type { OpenBackend } from '../../backends/open-backends.ts'
import type { Core } from '../context.ts'
import { callEntered, callOnce, describe, enterUpstream, isToldAlready } from './call-upstream.ts'

type Parts = Pick<Core, 'store' | 'backends' | 'settings' | 'log' | 'health'>

/** How long a deleted backend tries to remove what it kept upstream, in ms. */
const RETIRE_MS = 600_000

/** Brings up to date what backends keep upstream beside their credentials; those without live credentials wait. */
export async function keepUpBackends(core: Parts): Promise<void> {
  const { byUid } = await core.backends.at(await core.store.generation())
  core.health.keepOnly(byUid)
  await Promise.all([...byUid.values()].map((backend) => keepUpOne(core, backend)))
}

async function keepUpOne(core: Parts, backend: OpenBackend): Promise<void> {
  if (!backend.kind.upstream || backend.endedAt !== null || backend.breakers.issuing.wait() > 0) return
  if ((await core.store.credentials.countOpenOfBackend(backend.uid, 1)) === 0) return
  try {
    await callOnce(core, backend, async (instance, signal) => instance.keepUp?.(signal))
  } catch (error) {
    core.log[isToldAlready(core, backend, error) ? 'debug' : 'warn'](
      { backend: backend.name, detail: describe(error) },
      'the upstream could not be brought up to date; it will be tried again in a minute',
    )
  }
}

/**
 * Removes what a deleted backend kept upstream, after its last credential is gone. Returns true when that is
 * done, or was tried long enough to give up: what is left then is of no use to anybody.
 */
export async function retireBackend(core: Parts, backend: OpenBackend): Promise<boolean> {
  if (!backend.kind.upstream || backend.endedAt === null) return true
  try {
    const entered = enterUpstream(backend, 'revoking')
    await callEntered(core, backend, entered, async (instance, signal) => instance.retire?.(signal))
    return true
  } catch (error) {
    const isLast = core.store.now() - backend.endedAt > RETIRE_MS
    core.log.warn(
      { backend: backend.name, detail: describe(error), gaveUp: isLast },
      'the deleted backend could not remove what it kept upstream',
    )
    return isLast
  }
}
