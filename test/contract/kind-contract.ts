import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BackendError, type Issued, type IssueRequest, UPSTREAM_MARK } from '../../src/backends/kind.ts'
import { isId } from '../../src/domain/ids.ts'
import { isScope } from '../../src/domain/scope.ts'
import { describeBadDays } from './kind-bad-days.ts'
import { describeListing } from './kind-listing.ts'
import { never, newCredentialId, newRequest, type OpenKind } from './open-kind.ts'

/** What every kind promises (src/backends/kind.ts). */
export function describeKind(name: string, open: () => Promise<OpenKind>): void {
  describe(`the contract of a kind: ${name}`, () => {
    let opened: OpenKind
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close())

    describeShape(() => opened)
    describeIssue(() => opened)
    describeListing(() => opened)
    // Its last test disposes of the backend.
    describeRevoke(() => opened)
    describeBadDays(() => opened)
  })
}

function describeShape(get: () => OpenKind): void {
  it('describes itself truthfully', () => {
    const { kind, backend } = get()
    expect(kind.type).toMatch(/^[a-z][a-z0-9-]*$/)
    expect(kind.title).not.toBe('')
    expect(kind.scopes.help).not.toBe('')
    expect(kind.config).toMatchObject({ type: 'object', additionalProperties: false })
    expect(kind.params).toMatchObject({ additionalProperties: false })
    // Without it the living credentials of one upstream would be "revoked" at another, and its secrets sent there.
    const addresses = Object.values(kind.config.properties).filter((field) => UPSTREAM_MARK in field)
    if (kind.upstream) expect(addresses).not.toEqual([])
    for (const { form, gives } of kind.scopes.forms) {
      expect(gives).not.toBe('')
      const scope = form.replace(/<\w+>/g, 'app')
      expect(isScope(scope)).toBe(true)
      expect(kind.scopes.valid(scope)).toBe(true)
    }
    for (const hostile of ['', "x'; DROP", 'a b', 'a\n', 'a::b', 'ä']) {
      expect(kind.scopes.valid(hostile)).toBe(false)
    }
    expect(typeof backend.revoke).toBe(kind.revocation === 'exact' ? 'function' : 'undefined')
    if (kind.upstream && backend.revoke !== undefined) expect(typeof backend.recover).toBe('function')
  })

  it('passes its own check, and fails it with a BackendError when aborted', async () => {
    const { kind, backend } = get()
    await expect(backend.check(never())).resolves.toBeInstanceOf(Array)
    if (kind.upstream) await expect(backend.check(AbortSignal.abort())).rejects.toBeInstanceOf(BackendError)
  })

  it('reports an unreachable upstream as unavailable', async () => {
    const backend = await get().unreachable?.()
    if (backend === undefined) return
    const handle = backend.recover?.(newCredentialId())
    const tries: Promise<unknown>[] = [
      backend.check(never()),
      backend.issue(newRequest(get().scopes), never()),
    ]
    if (handle !== undefined && backend.revoke) tries.push(backend.revoke(handle, never()))
    for (const outcome of await Promise.allSettled(tries)) {
      expect(outcome.status).toBe('rejected')
      const reason = outcome.status === 'rejected' ? outcome.reason : undefined
      expect(reason).toBeInstanceOf(BackendError)
      expect(reason.fault).toBe('unavailable')
    }
    await backend[Symbol.asyncDispose]()
  })
}

function secretsOf(issued: Issued): string[] {
  const fields = Object.entries(issued.fields ?? {})
  const hidden = fields.filter(
    ([field]) => /password|secret|token|key|url|seed|creds/.test(field) && !/_id$/.test(field),
  )
  return [issued.secret, ...hidden.map(([, value]) => String(value))].filter((text) => text !== undefined)
}

async function end(open: OpenKind, request: IssueRequest<unknown>): Promise<void> {
  const handle = open.backend.recover?.(request.credentialId)
  if (handle !== undefined) await open.backend.revoke?.(handle, never())
}

function describeIssue(get: () => OpenKind): void {
  it('issues a working secret or fields, with the handle that recover names', async () => {
    const { backend, probe, scopes, kind } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    expect((issued.secret === undefined) !== (issued.fields === undefined)).toBe(true)
    expect(secretsOf(issued).every((text) => text.length >= 20)).toBe(true)
    expect(await probe.use(issued)).toBe(true)
    if (kind.upstream && kind.revocation === 'exact') {
      const recovered = backend.recover?.(request.credentialId)
      expect(recovered === undefined).toBe(kind.recovery === 'none')
      expect(issued.handle).toMatchObject(recovered ?? {})
      expect(isId('credential', request.credentialId)).toBe(true)
    }
    await end(get(), request)
  })

  it('sets the expiry upstream, never later than asked', async () => {
    const { backend, probe, scopes, kind } = get()
    if (probe.expiresAt === undefined) return
    const request = newRequest(scopes, { ttlMs: Math.max(61_234, (kind.limits.minTtlMs ?? 0) + 1_234) })
    const issued = await backend.issue(request, never())
    const actual = await probe.expiresAt(issued)
    expect(actual).toBe(issued.upstreamExpiresAt ?? request.expiresAt)
    expect(actual).toBeLessThanOrEqual(request.expiresAt)
    expect(actual).toBeGreaterThan(request.expiresAt - 1_001)
    await end(get(), request)
  })

  it('returns what its environment variables need', async () => {
    const { backend, scopes, kind, absentFields = [] } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    const known: Record<string, unknown> = { secret: issued.secret, ...issued.fields }
    for (const [variable, value] of Object.entries(kind.environment ?? {})) {
      expect(variable).toMatch(/^[A-Z][A-Z0-9_]*$/)
      const template = typeof value === 'string' ? value : value.file
      const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
      expect(names).not.toEqual([])
      for (const name of names.filter((one) => !absentFields.includes(one)))
        expect(known[name], `${variable} needs ${name}`).toBeDefined()
    }
    await end(get(), request)
  })

  it('never issues the same secret twice, at once or one after the other', async () => {
    const { backend, scopes } = get()
    const requests = Array.from({ length: 12 }, () => newRequest(scopes))
    const all = await Promise.all(requests.map((request) => backend.issue(request, never())))
    const secrets = all.map((issued) => secretsOf(issued)[0])
    expect(new Set(secrets).size).toBe(requests.length)
    await Promise.all(requests.map((request) => end(get(), request)))
  })

  it('puts nothing secret into facts, handle or log', async () => {
    const { backend, kind, scopes, logged } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    // Where an upstream knows a credential by its secret alone, revoking needs it; handles are sealed.
    const handle = kind.recovery === 'none' ? {} : issued.handle
    const seen = JSON.stringify([issued.facts, handle]) + logged()
    for (const secret of secretsOf(issued)) expect(seen).not.toContain(secret)
    await end(get(), request)
  })
}

function describeRevoke(get: () => OpenKind): void {
  it('revokes at once, repeatedly, and what never existed', async () => {
    const { backend, kind, probe, scopes } = get()
    if (kind.revocation !== 'exact' || backend.revoke === undefined || backend.recover === undefined) return
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    const handle = issued.handle ?? {}
    expect(await probe.exists?.(handle)).toBe(true)
    await backend.revoke(handle, never())
    expect(await probe.exists?.(handle)).toBe(false)
    await expect(probe.use(issued).catch(() => false)).resolves.toBe(false)
    await backend.revoke(handle, never())
    await backend.revoke(backend.recover(newCredentialId()) ?? handle, never())
  })

  it('revokes once when several try at the same time', async () => {
    const { backend, kind, probe, scopes } = get()
    if (kind.revocation !== 'exact') return
    const { handle = {} } = await backend.issue(newRequest(scopes), never())
    await Promise.all(Array.from({ length: 5 }, () => backend.revoke?.(handle, never())))
    expect(await probe.exists?.(handle)).toBe(false)
  })

  it('leaves nothing behind when an issue is aborted anywhere and then undone', async () => {
    const { backend, kind, probe, scopes } = get()
    if (!kind.upstream || backend.recover === undefined || backend.revoke === undefined) return
    // Where nothing can be found without the reply, there is nothing to undo.
    if (kind.recovery === 'none') return
    let refused = 0
    for (let ms = 0; ms < 24; ms += 2) {
      const request = newRequest(scopes)
      const abort = new AbortController()
      const issuing = backend.issue(request, abort.signal).catch((error: unknown) => {
        refused += 1
        expect(error).toBeInstanceOf(BackendError)
      })
      // The point of the abort has to move through the exchange with the upstream: only time can do that.
      if (ms === 0) setImmediate(() => abort.abort())
      else setTimeout(() => abort.abort(), ms)
      await issuing
      const handle = backend.recover(request.credentialId) ?? {}
      await backend.revoke(handle, never())
      expect(await probe.exists?.(handle)).toBe(false)
    }
    expect(refused).toBeGreaterThan(0)
  })

  it('fails to revoke with a BackendError once aborted, and is disposed of twice', async () => {
    const { backend } = get()
    const handle = backend.recover?.(newCredentialId())
    if (handle !== undefined && backend.revoke !== undefined) {
      await expect(backend.revoke(handle, AbortSignal.abort())).rejects.toBeInstanceOf(BackendError)
    }
    await backend[Symbol.asyncDispose]()
    await backend[Symbol.asyncDispose]()
  })
}
