import assert from 'node:assert/strict'
import { SECRET_MARK } from '../../backends/kind.ts'
import type { Use } from '../../domain/use.ts'
import { useFault } from '../../domain/use-rules.ts'
import { never, newRequest, type OpenKind } from './open-kind.ts'
import type { Runner } from './runner.ts'

/** What a kind says of where its credentials are used, for a proxy that holds them. */
export function describeUses({ it }: Runner, get: () => OpenKind): void {
  it('says soundly where its credentials are used, and shows no secret', async () => {
    const { kind, scopes } = get()
    if (kind.uses === undefined) return
    const config = configOf(get())
    for (const asked of [scopes, []]) {
      const uses = kind.uses(config as never, asked)
      assert.equal(new Set(uses.map(({ name }) => name)).size, uses.length, 'two uses have one name')
      for (const use of uses) requireSound(use)
      const text = JSON.stringify(uses)
      const secrets = Object.entries(kind.config.properties).filter(([, field]) => SECRET_MARK in field)
      for (const [field] of secrets) {
        const value = config[field]
        if (typeof value !== 'string' || value === '') continue
        const isShown = text.includes(value) || text.includes(JSON.stringify(value).slice(1, -1))
        assert(!isShown, `the uses show the secret "${field}"`)
      }
    }
  })

  it('names the fields of its credentials in their uses', async () => {
    const { kind, backend, scopes } = get()
    if (kind.uses === undefined) return
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    const handle = issued.handle ?? backend.recover?.(request.credentialId)
    if (handle !== undefined) await backend.revoke?.(handle, never())
    for (const use of kind.uses(configOf(get()) as never, scopes)) {
      if (use.protocol !== 'http') continue
      assert.notDeepEqual(use.places, [], `${use.name} has no place for a secret`)
      for (const place of use.places) {
        const names = place.in === 'sigv4' ? [place.field, place.keyId, place.token] : [place.field]
        for (const name of names) {
          if (place.in === 'sigv4' && name === undefined) continue
          const isThere = name === undefined ? issued.secret !== undefined : name in (issued.fields ?? {})
          assert(isThere, `${use.name} names "${name}", which no credential has`)
        }
      }
    }
  })
}

function configOf({ kind, config }: OpenKind): Readonly<Record<string, unknown>> {
  assert(config !== undefined, `the test of ${kind.type} must say with which "config" the backend was opened`)
  return config as Readonly<Record<string, unknown>>
}

function requireSound(use: Use): void {
  assert.match(use.name, /^[a-z][a-z0-9-]{0,31}$/)
  if (use.protocol !== 'http') {
    assert(use.host !== '' && use.port > 0 && use.port < 65_536, `${use.name} has no address`)
    return
  }
  assert.equal(useFault(use), undefined)
  assert(use.local || use.origin.startsWith('https://'), `${use.name} is not https`)
  assert.notDeepEqual(use.allow, [], `${use.name} allows nothing`)
  assert(Math.max(use.allow.length, use.deny.length) <= 256, `${use.name} has too many rules`)
}
