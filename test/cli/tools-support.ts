import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Type from 'typebox'
import { kinds } from '../../src/backends/index.ts'
import type { Kind } from '../../src/backends/kind.ts'
import { commandScript } from '../support/compile-cache.ts'
import { startWorld, type World } from './support.ts'

const config = Type.Object(
  {
    fields: Type.Optional(Type.Record(Type.String(), Type.String())),
    secret: Type.Optional(Type.String()),
    /** Seconds before the end that the upstream ends it itself. */
    early: Type.Optional(Type.Integer()),
  },
  { additionalProperties: false },
)

/** A kind that gives the configured fields; `{id}` in them becomes the credential's id. */
const parts: Kind<typeof config> = {
  type: 'parts',
  title: 'Parts for tests',
  config,
  params: Type.Object({}, { additionalProperties: false }),
  limits: {},
  revocation: 'expiry_only',
  upstream: false,
  scopes: { valid: () => true, forms: [{ form: 'read', gives: 'read' }], help: 'Any.' },
  open: async ({ fields, secret, early }) => ({
    check: async () => [],
    issue: async ({ credentialId, expiresAt }) => {
      const fill = (text: string) => text.replaceAll('{id}', credentialId)
      return {
        ...(secret === undefined ? {} : { secret: fill(secret) }),
        ...(fields === undefined
          ? {}
          : {
              fields: Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, fill(value)])),
            }),
        ...(early === undefined ? {} : { upstreamExpiresAt: expiresAt - early * 1000 }),
      }
    },
    [Symbol.asyncDispose]: async () => {},
  }),
}

export interface ToolsWorld extends World {
  /** A backend of this name that gives these parts. */
  add(name: string, config: Record<string, unknown>): Promise<void>
  /** Ids of this agent's credentials that are alive, by backend. */
  alive(backend?: string): Promise<string[]>
}

/** The kind is given to the server as the built-in ones are. */
export async function startToolsWorld(more: Parameters<typeof startWorld>[0] = {}): Promise<ToolsWorld> {
  const known = kinds as unknown as Kind[]
  if (!known.includes(parts as unknown as Kind)) known.push(parts as unknown as Kind)
  const world = await startWorld({ scopes: ['*'], ...more })
  return {
    ...world,
    close: async () => {
      await world.close()
      // Files share a worker: the next one must see the built-in kinds only.
      known.splice(known.indexOf(parts as unknown as Kind), 1)
    },
    add: async (name, settings) => {
      await world.app.newBackend({ type: 'parts', name, config: settings, max_ttl: '2h', default_ttl: '1h' })
    },
    alive: async (backend) => {
      const { body } = await world.agent.client.get('/v1/active?limit=1000')
      const all = body as { id: string; backend: string }[]
      return all.filter((one) => backend === undefined || one.backend === backend).map(({ id }) => id)
    },
  }
}

/** The fields of an AWS backend. */
export const AWS_FIELDS = {
  access_key_id: 'ASIA-{id}',
  secret_access_key: 'secret/of+{id}',
  session_token: 'session=={id}',
}

const source = (name: string) => fileURLToPath(new URL(`../../src/cli/${name}.ts`, import.meta.url))

/** A directory with the commands of this checkout, to stand first in PATH. */
export async function installCommands(world: World): Promise<Record<string, string>> {
  const bin = join(world.home, 'bin')
  await mkdir(bin, { recursive: true })
  const commands = {
    mayfly: 'main',
    'docker-credential-mayfly': 'docker-credential',
    'terraform-credentials-mayfly': 'terraform-credentials',
  }
  for (const [name, file] of Object.entries(commands))
    await writeFile(join(bin, name), commandScript(source(file)), {
      mode: 0o755,
    })
  return { ...world.env, PATH: `${bin}:${world.env['PATH']}` }
}
