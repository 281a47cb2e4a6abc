import { secretFields } from '../../backends/config-fields.ts'
import { certificateToldKey, rootToldKey } from '../../domain/backend.ts'
import { formatDuration } from '../../domain/duration.ts'
import { DAY_MS } from '../../domain/limits.ts'
import { audit } from '../audit/entry.ts'
import { SYSTEM } from '../caller.ts'
import type { Core } from '../context.ts'
import type { Entry } from '../parts.ts'

/** How long before its end a certificate is told of. */
const EXPIRING_MS = 14 * DAY_MS

/** The certificate that the server shows. */
export interface ServerCertificate {
  /** SHA-256 of its DER, in hexadecimal digits. */
  readonly sha256: string
  /** Epoch ms. */
  readonly notAfter: number
}

/**
 * Records root secrets that are older than their backend's `rotate_root_after`, and a certificate of the server that expires soon:
 * each once, whatever node sees it first.
 */
export function createAgeWatch(core: Pick<Core, 'store' | 'ids' | 'backends'>): {
  look(certificate: ServerCertificate | undefined): Promise<void>
} {
  const { store } = core
  /** By key: what this node has seen in the store. */
  const known = new Map<string, string>()

  async function tellOnce(key: string, value: string, entry: Entry): Promise<void> {
    if (known.get(key) === value) return
    const { meta, commit } = store
    const stored = await meta.get(key)
    if (stored !== value) {
      const step = stored === undefined ? meta.add(key, value) : meta.replace(key, stored, value)
      // Refused: another node was faster, as the next look sees.
      if (!(await commit([step, audit(core, SYSTEM, entry)])).done) return
    }
    known.set(key, value)
  }

  return {
    async look(certificate) {
      const now = store.now()
      const { byUid } = await core.backends.at(await store.generation())
      for (const {
        uid,
        name,
        endedAt,
        createdAt,
        rootSetAt,
        rotateRootAfterMs: after,
        kind,
      } of byUid.values()) {
        if (after === null || endedAt !== null || secretFields(kind.config).length === 0) continue
        const setAt = rootSetAt ?? createdAt
        if (now - setAt < after) continue
        await tellOnce(rootToldKey(uid), String(setAt), {
          action: 'backend.root_aged',
          backend: name,
          details: { set_at: new Date(setAt).toISOString(), rotate_root_after: formatDuration(after) },
        })
      }
      if (certificate === undefined || certificate.notAfter - now > EXPIRING_MS) return
      const { sha256, notAfter } = certificate
      await tellOnce(certificateToldKey(sha256), String(notAfter), {
        action: 'certificate.expiring',
        details: { sha256, expires_at: new Date(notAfter).toISOString() },
      })
    },
  }
}
