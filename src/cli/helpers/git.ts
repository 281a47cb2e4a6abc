import { usage } from '../frame/failure.ts'
import { text, type ValuesOf } from '../frame/options.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { formatCredential, type GitCredential, parseAttributes, QUIT } from '../git/credential-protocol.ts'
import { isForHost, parseGitHost } from '../git/host.ts'
import { dropCached, identityOf } from '../session/credential-cache.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { REQUEST_OPTIONS, requestOf } from '../tools/request.ts'

const OPTIONS = { host: text('<host>', 'the git server to authenticate to'), ...REQUEST_OPTIONS }

type Options = ValuesOf<typeof OPTIONS>

/** A line has at most 65,535 bytes (git-credential(1)), and git sends a few short ones. */
const MAX_INPUT_BYTES = 65_536
/** For servers that accept any user name with a token. */
const USERNAME = 'x-access-token'

export const verb = defineVerb({
  description:
    'A credential helper of git (gitcredentials(7)); "mayfly git setup" configures it. It answers for one host and is silent for all others. "get" answers from a cache when possible, "erase" revokes the credential, "store" does nothing.',
  arguments: [{ name: '<operation>', description: 'get, store or erase; git adds it' }],
  options: OPTIONS,
  examples: {
    'printf "protocol=https\\nhost=git.example.com\\n\\n" | mayfly helper git --host git.example.com --backend forge get':
      'what git runs to ask for a password',
  },
  json: 'not supported: the answer is in the format that git reads',
  exits: [3, 4, 5],
  run: async (context, options, operation) => {
    if (options.host === undefined || options.backend === undefined)
      throw usage('--host and --backend are required.', 'Let `mayfly git setup` write the configuration.')
    const host = parseGitHost(options.host)
    const asked = parseAttributes(await readAsked(context))
    if (!isForHost(host, asked)) return
    // Later versions of git may send other operations and expect silence for unknown ones.
    if (operation === 'get') await answer(context, { ...options, backend: options.backend })
    if (operation === 'erase') await erase(context, options.backend, asked.get('password'))
  },
})

/** Reads up to the empty line or the end: not every caller closes the pipe before the answer. */
async function readAsked({ stdin, signal }: Context): Promise<string> {
  const stop = () => stdin.destroy(signal.reason instanceof Error ? signal.reason : undefined)
  signal.throwIfAborted()
  signal.addEventListener('abort', stop, { once: true })
  let asked = Buffer.alloc(0)
  try {
    for await (const chunk of stdin) {
      asked = Buffer.concat([asked, Buffer.from(chunk)])
      if (asked.length > MAX_INPUT_BYTES)
        throw usage(`Standard input holds more than ${MAX_INPUT_BYTES} bytes.`, 'git never sends that much.')
      if (/(?:^|\n)\r?\n/.test(asked.toString('latin1'))) break
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
  return asked.toString('utf8')
}

async function answer(context: Context, options: Options & { backend: string }): Promise<void> {
  try {
    const session = await openAgentSession(context)
    const toText = (credential: HeldCredential) => formatCredential(toGit(credential))
    const request = requestOf(options)
    await context.out.result(await heldAnswer(context, session, request, RENEW_BEFORE_MS.git, toText))
  } catch (error) {
    // Otherwise git would prompt on an unattended terminal or ask another helper.
    await context.out.result(QUIT)
    throw error
  }
}

function toGit({ token, fields, expires_at }: HeldCredential): GitCredential {
  const { username, password } = fields ?? {}
  const hasBoth = typeof username === 'string' && typeof password === 'string'
  const expiresAt = Date.parse(expires_at)
  return hasBoth ? { username, password, expiresAt } : { username: USERNAME, password: token, expiresAt }
}

/** The server refused this password: revoke it, so that the next `get` returns another. */
async function erase(context: Context, backend: string, password: string | undefined): Promise<void> {
  const { client, target, login } = await openAgentSession(context)
  const own = identityOf(target, login.auth)
  const isMeant = (one: HeldCredential, identity: string) =>
    identity === own && one.backend === backend && [undefined, toGit(one).password].includes(password)
  let failure: unknown
  for (const { id } of await dropCached(context, isMeant)) {
    try {
      await client.revoke(id)
    } catch (error) {
      context.signal.throwIfAborted()
      // It is no longer in the cache, so report its id here.
      context.out.note(`mayfly: ${id} was not revoked.`)
      failure ??= error
    }
  }
  if (failure !== undefined) throw failure
}
