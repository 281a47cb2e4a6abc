import assert from 'node:assert/strict'
import { type Handle, type Issued, type IssueRequest, UPSTREAM_MARK } from '../../backends/kind.ts'
import { BackendError } from '../../domain/backend-error.ts'
import { isId } from '../../domain/ids.ts'
import { isScope } from '../../domain/scope.ts'
import { describeBadDays } from './bad-days.ts'
import { describeHolder } from './holder.ts'
import { describeListing } from './listing.ts'
import { never, newCredentialId, newRequest, type OpenKind } from './open-kind.ts'
import type { Runner } from './runner.ts'
import { describeUses } from './uses.ts'

/** What every kind promises (src/backends/kind.ts), whatever runs the tests. */
export function describeContract(name: string, open: () => Promise<OpenKind>, runner: Runner): void {
  runner.describe(`the contract of a kind: ${name}`, () => {
    let opened: OpenKind | undefined
    runner.before(async () => {
      opened = await open()
    })
    runner.after(async () => opened?.close())
    const get = () => {
      assert(opened !== undefined, 'the kind was not opened')
      return opened
    }
    describeShape(runner, get)
    describeIssue(runner, get)
    describeUses(runner, get)
    describeListing(runner, get)
    describeHolder(runner, get)
    // Its last test disposes of the backend.
    describeRevoke(runner, get)
    describeBadDays(runner, get)
  })
}

function describeShape({ it }: Runner, get: () => OpenKind): void {
  it('describes itself truthfully', async () => {
    const { kind, backend } = get()
    assert.match(kind.type, /^[a-z][a-z0-9-]*$/)
    assert.notEqual(kind.title, '')
    assert.notEqual(kind.scopes.help, '')
    assert.partialDeepStrictEqual(kind.config, { type: 'object', additionalProperties: false })
    assert.partialDeepStrictEqual(kind.params, { additionalProperties: false })
    // Without it the living credentials of one upstream would be "revoked" at another, and its secrets sent there.
    const addresses = Object.values(kind.config.properties).filter((field) => UPSTREAM_MARK in field)
    if (kind.upstream) assert.notDeepEqual(addresses, [], 'no field of the configuration is an upstreamField')
    for (const { form, gives } of kind.scopes.forms) {
      assert.notEqual(gives, '')
      const scope = form.replace(/<\w+>/g, 'app')
      assert(isScope(scope), `${scope} is no scope`)
      assert(kind.scopes.valid(scope), `${scope} is of a form, but not valid`)
    }
    for (const hostile of ['', "x'; DROP", 'a b', 'a\n', 'a::b', 'ä']) {
      assert(!kind.scopes.valid(hostile), `${JSON.stringify(hostile)} is valid`)
    }
    assert.equal(typeof backend.revoke, kind.revocation === 'exact' ? 'function' : 'undefined')
    if (kind.upstream && backend.revoke !== undefined) assert.equal(typeof backend.recover, 'function')
  })

  it('passes its own check, and fails it with a BackendError when aborted', async () => {
    const { kind, backend } = get()
    assert(Array.isArray(await backend.check(never())))
    if (kind.upstream) await assert.rejects(backend.check(AbortSignal.abort()), BackendError)
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
      assert(outcome.status === 'rejected', 'it succeeded')
      assert(outcome.reason instanceof BackendError, String(outcome.reason))
      assert.equal(outcome.reason.fault, 'unavailable')
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

function describeIssue({ it }: Runner, get: () => OpenKind): void {
  it('issues a working secret or fields, with the handle that recover names', async () => {
    const { backend, probe, scopes, kind } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    assert(
      (issued.secret === undefined) !== (issued.fields === undefined),
      'a secret or fields, and not both',
    )
    assert(
      secretsOf(issued).every((text) => text.length >= 20),
      'a secret is shorter than 20 characters',
    )
    assert.equal(await probe.use(issued), true)
    if (kind.upstream && kind.revocation === 'exact') {
      const recovered = backend.recover?.(request.credentialId)
      assert.equal(recovered === undefined, kind.recovery === 'none')
      assert.partialDeepStrictEqual(issued.handle, recovered ?? {})
      assert(isId('credential', request.credentialId))
    }
    await end(get(), request)
  })

  it('sets the expiry upstream, never later than asked', async () => {
    const { backend, probe, scopes, kind } = get()
    if (probe.expiresAt === undefined) return
    const request = newRequest(scopes, { ttlMs: Math.max(61_234, (kind.limits.minTtlMs ?? 0) + 1_234) })
    const issued = await backend.issue(request, never())
    const actual = await probe.expiresAt(issued)
    assert.equal(actual, issued.upstreamExpiresAt ?? request.expiresAt)
    assert(actual <= request.expiresAt, 'it ends later than asked')
    assert(actual > request.expiresAt - 1_001, 'it ends more than a second earlier than asked')
    await end(get(), request)
  })

  it('returns what its environment variables need', async () => {
    const { backend, scopes, kind, absentFields = [] } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    const known: Record<string, unknown> = { secret: issued.secret, ...issued.fields }
    for (const [variable, value] of Object.entries(kind.environment ?? {})) {
      assert.match(variable, /^[A-Z][A-Z0-9_]*$/)
      const template = typeof value === 'string' ? value : value.file
      const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
      for (const name of names.filter((one) => !absentFields.includes(one)))
        assert(known[name] !== undefined, `${variable} needs ${name}`)
    }
    await end(get(), request)
  })

  it('never issues the same secret twice, at once or one after the other', async () => {
    const { backend, scopes } = get()
    const requests = Array.from({ length: 12 }, () => newRequest(scopes))
    const all = await Promise.all(requests.map((request) => backend.issue(request, never())))
    const secrets = all.map((issued) => secretsOf(issued)[0])
    assert.equal(new Set(secrets).size, requests.length)
    await Promise.all(requests.map((request) => end(get(), request)))
  })

  it('puts nothing secret into facts, handle or log', async () => {
    const { backend, kind, scopes, logged } = get()
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    // Where an upstream knows a credential by its secret alone, revoking needs it; handles are sealed.
    const handle = kind.recovery === 'none' ? {} : issued.handle
    const seen = JSON.stringify([issued.facts, handle]) + logged()
    for (const secret of secretsOf(issued))
      assert(!seen.includes(secret), 'facts, handle or log hold a secret')
    await end(get(), request)
  })
}

function describeRevoke({ it }: Runner, get: () => OpenKind): void {
  it('revokes at once, repeatedly, and what never existed', async () => {
    const { backend, kind, probe, scopes } = get()
    if (kind.revocation !== 'exact' || backend.revoke === undefined || backend.recover === undefined) return
    const request = newRequest(scopes)
    const issued = await backend.issue(request, never())
    const handle = issued.handle ?? {}
    assert.equal(await probe.exists?.(handle), true)
    await backend.revoke(handle, never())
    assert.equal(await probe.exists?.(handle), false)
    assert.equal(await probe.use(issued).catch(() => false), false)
    await backend.revoke(handle, never())
    await backend.revoke(backend.recover(newCredentialId()) ?? handle, never())
  })

  it('revokes once when several try at the same time', async () => {
    const { backend, kind, probe, scopes } = get()
    if (kind.revocation !== 'exact') return
    const { handle = {} } = await backend.issue(newRequest(scopes), never())
    await Promise.all(Array.from({ length: 5 }, () => backend.revoke?.(handle, never())))
    assert.equal(await probe.exists?.(handle), false)
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
      const issuing: Promise<unknown> = backend.issue(request, abort.signal).catch((error: unknown) => {
        refused += 1
        assert(error instanceof BackendError, String(error))
      })
      // The point of the abort has to move through the exchange with the upstream: only time can do that.
      if (ms === 0) setImmediate(() => abort.abort())
      else setTimeout(() => abort.abort(), ms)
      await issuing
      const handle: Handle = backend.recover(request.credentialId) ?? {}
      await backend.revoke(handle, never())
      assert.equal(await probe.exists?.(handle), false)
    }
    assert(refused > 0, 'no issue was aborted')
  })

  it('fails to revoke with a BackendError once aborted, and is disposed of twice', async () => {
    const { backend } = get()
    const handle = backend.recover?.(newCredentialId())
    if (handle !== undefined && backend.revoke !== undefined) {
      await assert.rejects(async () => backend.revoke?.(handle, AbortSignal.abort()), BackendError)
    }
    await backend[Symbol.asyncDispose]()
    await backend[Symbol.asyncDispose]()
  })
}
