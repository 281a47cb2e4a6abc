import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import type { Backend, Handle, Host, Issued, Kind } from '../../backends/kind.ts'
import { readSchema } from '../../plugins/schema.ts'
import { isForm, matcherOf, shownForm } from '../../plugins/scope-forms.ts'
import type { DefinedKind } from '../define-kind.ts'
import { createHost } from '../host.ts'
import { describeContract } from './contract.ts'
import { newCredentialId, type OpenKind, type Tricks } from './open-kind.ts'
import type { Runner } from './runner.ts'

/** What a kind is tested against. Times are epoch ms. */
export interface Upstream {
  /** Of a backend that reaches it. */
  readonly config: Readonly<Record<string, unknown>>
  /** Scopes that can be granted here. */
  readonly scopes: readonly string[]
  /** Uses the credential as an agent would; throws or is false when it does not work. */
  use(issued: Issued): Promise<boolean>
  /** Whether what the handle names is there. Only a kind that cannot revoke goes without it. */
  exists?(handle: Handle): Promise<boolean>
  /** When the upstream itself ends the credential. Absent where it knows no expiry, so that only Mayfly ends it. */
  expiresAt?(issued: Issued): Promise<number>
  /** Fields that lead to where nothing listens. */
  readonly unreachable?: Readonly<Record<string, unknown>>
  /** For kinds that speak HTTP: fields that lead to `url`, which answers as nobody should. */
  hostile?(url: string): Readonly<Record<string, unknown>>
  /** What the holder of a credential may try here, to keep it beyond its revocation. */
  readonly tricks?: Tricks
  /** Fields that lead to where the request that ends an account is answered as if it had worked, and does nothing. */
  readonly disarmed?: Readonly<Record<string, unknown>>
  /** Fields that a credential has only with another configuration. */
  readonly absentFields?: readonly string[]
  close(): Promise<void>
}

const NODE: Runner = { describe, it, before, after }

/** Runs the contract of a kind: what Mayfly relies on. Each call opens an upstream of its own with `start`. */
export function testKind(kind: DefinedKind, start: () => Promise<Upstream>, runner: Runner = NODE): void {
  runner.it(`${kind.type} states what a server accepts`, async () => {
    readSchema(plain(kind.config), 'configuration')
    readSchema(plain(kind.params), 'options')
    for (const { form } of kind.scopes.forms) assert(isForm(form), `${form} is no form of scopes`)
    assert.match(kind.version, /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$/)
  })
  describeContract(kind.type, () => openKind(kind, start), runner)
}

const plain = (schema: TSchema): unknown => JSON.parse(JSON.stringify(schema))

async function openKind(kind: DefinedKind, start: () => Promise<Upstream>): Promise<OpenKind> {
  const upstream = await start()
  const lines: string[] = []
  const host = testHost(lines)
  const opened: Backend[] = []
  const open = async (fields: object = {}) => {
    const config = { ...upstream.config, ...fields }
    assert(Value.Check(kind.config, config), 'the configuration does not match the schema of the kind')
    const backend = await kind.open(config, host)
    opened.push(backend)
    return backend
  }
  const { unreachable, hostile, exists, expiresAt, absentFields, tricks, disarmed } = upstream
  return {
    kind: asServed(kind),
    backend: await open(),
    scopes: upstream.scopes,
    probe: {
      use: (issued) => upstream.use(issued),
      ...(exists === undefined ? {} : { exists: (handle) => exists.call(upstream, handle) }),
      ...(expiresAt === undefined ? {} : { expiresAt: (issued) => expiresAt.call(upstream, issued) }),
    },
    ...(absentFields === undefined ? {} : { absentFields }),
    logged: () => lines.join('\n'),
    ...(unreachable === undefined ? {} : { unreachable: () => open(unreachable) }),
    ...(hostile === undefined ? {} : { hostile: (url) => open(hostile.call(upstream, url)) }),
    ...(tricks === undefined ? {} : { tricks }),
    ...(disarmed === undefined ? {} : { disarmed: () => open(disarmed) }),
    async close() {
      await Promise.all(opened.map((backend) => backend[Symbol.asyncDispose]()))
      await upstream.close()
    },
  }
}

/** As a server takes it. */
function asServed(kind: DefinedKind): Kind {
  const { forms, help, valid } = kind.scopes
  const matches = matcherOf(forms.map(({ form }) => form))
  return {
    ...kind,
    scopes: {
      valid: (scope) => matches(scope) && valid(scope),
      forms: forms.map(({ form, gives }) => ({ form: shownForm(form), gives })),
      help,
    },
  }
}

function testHost(lines: string[]): Host {
  const write = (fields: Record<string, unknown>, message: string) => {
    lines.push(JSON.stringify({ ...fields, message }))
  }
  const uid = newCredentialId().replace('cred_', 'be_')
  const issuerUrl = 'https://mayfly.test'
  const about = { name: 'test', uid, issuer: `${issuerUrl}/backends/test`, issuerUrl, timeoutMs: 10_000n }
  return { ...createHost(about), log: { warn: write, debug: write } }
}
