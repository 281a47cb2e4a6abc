/** The files of a new plugin. They hold no template literals, because they are in one. */
export interface TemplateValues {
  readonly name: string
  /** Of Mayfly. */
  readonly version: string
}

/** The version of rolldown that the template was tested with. */
const ROLLDOWN = '^1.2.19'

export function templateFiles({ name, version }: TemplateValues): Readonly<Record<string, string>> {
  const title = name.charAt(0).toUpperCase() + name.slice(1)
  const fill = (text: string) => text.trimStart().replaceAll('TYPE', name).replaceAll('TITLE', title)
  return {
    'package.json': `${JSON.stringify(manifest(name, version), undefined, 2)}\n`,
    'tsconfig.json': `${JSON.stringify(TSCONFIG, undefined, 2)}\n`,
    '.gitignore': 'node_modules\ndist\n',
    'README.md': fill(README),
    'src/kind.ts': fill(KIND),
    'src/plugin.ts': fill(PLUGIN),
    'test/kind.test.ts': fill(TEST),
    'example/service.ts': fill(SERVICE),
  }
}

const manifest = (name: string, version: string) => ({
  name: `mayfly-plugin-${name}`,
  version: '1.0.0',
  description: `The kind ${name} for Mayfly`,
  type: 'module',
  main: 'dist/plugin.js',
  files: ['dist'],
  engines: { node: '>=24.2' },
  scripts: {
    test: 'node --test test/*.test.ts',
    build: 'rolldown src/plugin.ts --file dist/plugin.js --format esm --platform node',
    prepack: 'npm run build',
  },
  devDependencies: { mayfly: `^${version}`, rolldown: ROLLDOWN },
})

/** For editors: Node runs the sources as they are. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
  },
  include: ['src', 'test', 'example'],
}

const KIND = `
import { BackendError, defineKind, guardedField, secretField, Type, upstreamField } from 'mayfly/plugin'

type Reply = { readonly secret?: unknown } | undefined

const nameOf = (credentialId: string) => 'mf_' + credentialId.slice('cred_'.length)

export const kind = defineKind({
  type: 'TYPE',
  title: 'TITLE',
  version: '1.0.0',
  config: Type.Object(
    {
      base_url: Type.String(upstreamField({ description: 'Address of the service.' })),
      admin_key: Type.String(secretField({ description: 'Key of an administrator.' })),
      local: Type.Optional(Type.Boolean(guardedField({ description: 'The service runs on this machine.' }, false))),
    },
    { additionalProperties: false },
  ),
  revocation: 'exact',
  scopes: {
    forms: [{ form: '<team>:read', gives: 'read what a team has' }, { form: '<team>:write', gives: 'change it, too' }],
    help: '<team>:read or <team>:write.',
  },
  async open({ base_url, admin_key, local = false }, host) {
    const call = async (signal: AbortSignal, method: string, path: string, body?: object) => {
      const headers = { authorization: 'Bearer ' + admin_key, 'content-type': 'application/json' }
      const init = { method, headers, signal, ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
      const reply = await host.fetch(base_url + path, init, { local })
      if (reply.status === 401 || reply.status === 403) throw new BackendError('denied', 'The service refused the admin key.')
      // What is gone counts as deleted.
      if (reply.ok || (method === 'DELETE' && reply.status === 404)) return (await reply.json().catch(() => undefined)) as Reply
      throw new BackendError('unavailable', 'The service answered with the status ' + reply.status + '.')
    }
    return {
      async check(signal) {
        await call(signal, 'GET', '/keys')
        return []
      },
      // The name follows from the id, so that a key whose creation got no answer is found.
      async issue({ credentialId, scopes, expiresAt }, signal) {
        const name = nameOf(credentialId)
        const made = await call(signal, 'POST', '/keys', { name, scopes, expires_at: expiresAt })
        if (typeof made?.secret !== 'string') throw new BackendError('unavailable', 'The service answered without a key.')
        return { secret: made.secret, handle: { name } }
      },
      async revoke({ name }, signal) {
        await call(signal, 'DELETE', '/keys/' + encodeURIComponent(String(name)))
      },
      recover: (credentialId) => ({ name: nameOf(credentialId) }),
      async [Symbol.asyncDispose]() {},
    }
  },
})
`

const PLUGIN = `
import { servePlugin } from 'mayfly/plugin'
import { kind } from './kind.ts'

servePlugin(kind)
`

const TEST = `
import { testKind } from 'mayfly/plugin/testing'
import { startService } from '../example/service.ts'
import { kind } from '../src/kind.ts'

// Replace the example by your service, or by a test account of it.
testKind(kind, async () => {
  const service = await startService('admin-key')
  const config = { base_url: service.url, admin_key: 'admin-key', local: true }
  return {
    config,
    scopes: ['orders:read'],
    unreachable: { base_url: 'http://127.0.0.1:1' },
    hostile: (url) => ({ base_url: url }),
    exists: async ({ name }) => service.keys.has(String(name)),
    async use({ secret }) {
      const reply = await fetch(service.url + '/orders', { headers: { authorization: 'Bearer ' + secret } })
      return reply.ok
    },
    expiresAt: async ({ handle }) => service.keys.get(String(handle?.name))?.expires_at ?? 0,
    close: service.close,
  }
})
`

const SERVICE = `
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

interface Key {
  readonly name: string
  readonly secret: string
  readonly expires_at: number
}

/** Stands for the service: GET, POST and DELETE /keys for an administrator, GET /orders for its keys. */
export async function startService(adminKey: string, port = 0) {
  const keys = new Map<string, Key>()
  async function answer(request: IncomingMessage): Promise<[status: number, body?: object]> {
    const { method, url = '', headers } = request
    const isKey = [...keys.values()].some(({ secret }) => headers.authorization === 'Bearer ' + secret)
    if (url === '/orders') return isKey ? [200, []] : [401]
    if (headers.authorization !== 'Bearer ' + adminKey) return [401]
    if (method === 'POST') {
      const { name, expires_at } = (await json(request)) as Key
      const secret = 'key_' + randomBytes(24).toString('hex')
      keys.set(name, { name, secret, expires_at })
      return [201, { secret }]
    }
    if (method === 'DELETE') return keys.delete(decodeURIComponent(url.slice('/keys/'.length))) ? [204] : [404]
    return [200, [...keys.keys()]]
  }
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: 'http://127.0.0.1:' + (server.address() as AddressInfo).port, keys, close }
}

// node example/service.ts 9000 admin-key
if (import.meta.main) {
  const [port, adminKey = ''] = process.argv.slice(2)
  console.log('listening on ' + (await startService(adminKey, Number(port))).url)
}
`

const README = `
# mayfly-plugin-TYPE

The kind \`TYPE\` for [Mayfly](https://www.npmjs.com/package/mayfly): short-lived keys of a service.

| File                 | What it is                                                            |
| -------------------- | --------------------------------------------------------------------- |
| \`src/kind.ts\`        | the kind: its configuration, its scopes, and how it issues and revokes |
| \`src/plugin.ts\`      | serves the kind to the Mayfly that starts it                          |
| \`test/kind.test.ts\`  | runs the contract that Mayfly relies on                               |
| \`example/service.ts\` | stands for the service, in the test and when you try the plugin       |

## Test it

    npm install
    npm test

The contract opens the kind, issues, revokes, aborts, and makes the service answer badly. A failed test says what Mayfly could not
rely on. Change \`src/kind.ts\` until it speaks to your service, and the test until it uses that service or a test account of it.

## Use it

    npm run build
    mayfly plugin add ./dist/plugin.js
    mayfly backend add TYPE --base-url https://api.example.com --admin-key-file key

\`npm run build\` puts everything that the plugin needs into one file. \`npm publish\` publishes it, and
\`mayfly plugin add npm:mayfly-plugin-TYPE@1.0.0\` adds it. After a change, raise the version and run \`mayfly plugin add\` again: the server
starts no other bytes than those that were added.

The plugin runs in a process of its own, under Node's permission model: it may read its own folder and use the network. It starts no
other programs and sees no variables but those that the administrator names. \`host.fetch\` follows Mayfly's rules for connections:
loopback only with \`local\`, no redirects, a time limit. What it writes to standard error appears in the log of the server.
`
