import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { createClient as generate } from '@hey-api/openapi-ts'
import openapiTS, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type NewAgent, startApp, type TestApp } from '../support/app.ts'

/** Two generators make a client from the document of a running server; it compiles, and calls that server. */
const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url))

let app: TestApp
let agent: NewAgent
let directory: string
beforeAll(async () => {
  app = await startApp({ ownIssuer: true })
  await app.newBackend({ name: 'orders' })
  agent = await app.newAgent({ scopes: ['orders'] })
  directory = await mkdtemp(join(tmpdir(), 'mayfly-clients-'))
  await symlink(MODULES, join(directory, 'node_modules'))
  await writeFile(join(directory, 'package.json'), '{"type":"module"}')
  await writeFile(join(directory, 'openapi.json'), await (await fetch(`${app.url}/openapi.json`)).text())
})
afterAll(async () => {
  await app.close()
  await rm(directory, { recursive: true, force: true })
})

/** Compiles strictly, in the directory. Returns what the compiler says. */
function compile(...files: string[]): string[] {
  const program = ts.createProgram(
    files.map((file) => join(directory, file)),
    {
      strict: true,
      skipLibCheck: true,
      noEmit: true,
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      allowImportingTsExtensions: true,
      lib: ['lib.esnext.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
      types: [],
    },
  )
  return ts
    .getPreEmitDiagnostics(program)
    .map(
      ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`,
    )
}

const load = (file: string) => import(/* @vite-ignore */ pathToFileURL(join(directory, file)).href)

test('openapi-typescript: its types fit openapi-fetch, and the client issues, reads and revokes', async () => {
  const source = JSON.parse(await readFile(join(directory, 'openapi.json'), 'utf8'))
  await writeFile(join(directory, 'paths.ts'), astToString(await openapiTS(source)))
  await writeFile(
    join(directory, 'fetch-client.ts'),
    `import createClient from 'openapi-fetch'
import type { components, paths } from './paths.ts'

export async function use(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } })
  const body: components['schemas']['CredentialRequest'] = { backend: 'orders', ttl: '5m' }
  const issued = await client.POST('/api/v1/credentials', { body })
  if (issued.data === undefined) throw new Error(issued.error.error.message)
  const id: string = issued.data.id
  const revoked = await client.DELETE('/api/v1/credentials/{id}', { params: { path: { id } } })
  const byQuery = await client.POST('/v1/credentials/{backend}', {
    params: { path: { backend: 'orders' }, query: { ttl: '10m0s', scope: ['read'] } },
  })
  const unknown = await client.GET('/api/v1/backends/{id}', { params: { path: { id: 'nothing' } } })
  const code: components['schemas']['Error']['error']['code'] | undefined = unknown.error?.error.code
  return { id, revoked: revoked.data?.revoked, ttl: byQuery.data?.ttl, code }
}
`,
  )
  expect(compile('fetch-client.ts')).toEqual([])
  const { use } = await load('fetch-client.ts')
  expect(await use(app.url, agent.token)).toEqual({
    id: expect.stringMatching(/^cred_/),
    revoked: true,
    ttl: '10m',
    code: 'backend_not_found',
  })
})

describe('@hey-api/openapi-ts', () => {
  test('its client logs in, issues, and creates a backend of a kind', async () => {
    const output = join(directory, 'generated')
    await mkdir(output)
    await generate({
      input: join(directory, 'openapi.json'),
      output: { path: output, module: { extension: '.ts' } },
      plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
      logs: { level: 'silent' },
    } as Parameters<typeof generate>[0])
    await writeFile(
      join(directory, 'sdk-client.ts'),
      `import { client } from './generated/client.gen.ts'
import { createBackend, createToken, getStatus, issueCredential } from './generated/sdk.gen.ts'
import type { CreateJwtBackend } from './generated/types.gen.ts'

export async function use(baseUrl: string, login: { client_id: string; client_secret: string }, admin: string) {
  client.setConfig({ baseUrl })
  const { data: token } = await createToken({ body: { grant_type: 'client_credentials', ...login } })
  const auth = () => token?.access_token ?? ''
  const status = await getStatus({ auth })
  const issued = await issueCredential({ auth, body: { backend: 'orders' } })
  const body: CreateJwtBackend = { type: 'jwt', name: 'made', config: { audience: 'reports' } }
  const made = await createBackend({ auth: () => admin, body })
  return { name: status.data?.name, id: issued.data?.id, kind: made.data?.type }
}
`,
    )
    expect(compile('sdk-client.ts')).toEqual([])
    const admin = await app.newAgent({ scopes: ['admin:backends:write', 'made'] })
    const { use } = await load('sdk-client.ts')
    expect(await use(app.url, agent.oidc, admin.token)).toEqual({
      name: agent.name,
      id: expect.stringMatching(/^cred_/),
      kind: 'jwt',
    })
  })
})
