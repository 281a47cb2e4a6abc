import { registryOf } from '../docker/host.ts'
import { CliError, EXIT, failureOf, usage } from '../frame/failure.ts'
import { oneLine } from '../frame/output.ts'
import { readStdin } from '../frame/prompt.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { peekCached } from '../session/credential-cache.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { endHeld, heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { contextFor, type HostEntry, readHosts } from '../tools/host-map.ts'
import { needOneLine, partOf, singleSecret } from '../tools/parts.ts'
import { requestOf } from '../tools/request.ts'

/** By this very text clients know that there is nothing, and go on without. */
const MISS = 'credentials not found in native keychain'
const MAX_INPUT_BYTES = 65_536
const TOOL = 'docker'
const OPERATIONS = ['get', 'store', 'erase', 'list'] as const

/** github.com/docker/docker-credential-helpers: what clients send and expect, errors included. */
export const verb = defineVerb<object, [operation: (typeof OPERATIONS)[number]]>({
  description:
    'The credential helper of docker, which runs it as docker-credential-mayfly; "mayfly docker setup" configures it. "get" answers from a cache while it can, "erase" revokes the credential, "store" takes nothing but what "get" gave.',
  arguments: [
    { name: '<operation>', description: 'get, store, erase or list; docker adds it', choices: OPERATIONS },
  ],
  examples: [
    { command: 'echo registry.example.com | mayfly docker-credential get', about: 'what docker does to ask' },
    { command: 'mayfly docker-credential list', about: 'the registries that are set up' },
  ],
  json: 'what docker reads, with or without --json: {ServerURL, Username, Secret}, or {ServerURL: Username} for list',
  exits: [3, 4, 5],
  run: async (context, _options, operation) => {
    try {
      return await runOperation(context, operation)
    } catch (error) {
      // Clients look for the reason on standard output, and some of them nowhere else.
      const { message } = failureOf(error)
      if (message !== '') await context.out.result(oneLine(message))
      throw error
    }
  },
})

async function runOperation(context: Context, operation: (typeof OPERATIONS)[number]): Promise<number> {
  const hosts = await readHosts(context, 'docker')
  if (operation === 'list') {
    const names = [...hosts].map(([host, entry]) => [host, entry.username ?? DEFAULT_USERNAME])
    await context.out.json(Object.fromEntries(names), 'line')
    return EXIT.done
  }
  const input = await readStdin(context, MAX_INPUT_BYTES)
  const asked = operation === 'store' ? readStored(input) : { ServerURL: input.trim() }
  const entry = hosts.get(registryOf(asked.ServerURL) ?? '')
  if (operation === 'get') return get(context, entry, asked.ServerURL)
  if (operation === 'store') await store(context, entry, asked)
  else if (entry !== undefined) await erase(context, entry)
  return EXIT.done
}

async function get(context: Context, entry: HostEntry | undefined, serverUrl: string): Promise<number> {
  if (entry === undefined) {
    await context.out.result(MISS)
    return EXIT.failed
  }
  const ours = contextFor(context, entry)
  const session = await openAgentSession(ours)
  const toPair = (credential: HeldCredential) => pairOf(credential, entry)
  const pair = await heldAnswer(ours, session, requestOf(entry), RENEW_BEFORE_MS.command, toPair)
  await context.out.json({ ServerURL: serverUrl, ...pair }, 'line')
  return EXIT.done
}

const DEFAULT_USERNAME = 'mayfly'

function pairOf(credential: HeldCredential, entry: HostEntry): { Username: string; Secret: string } {
  const password = partOf(credential, 'password')
  return {
    Username: entry.username ?? partOf(credential, 'username') ?? DEFAULT_USERNAME,
    Secret: password === undefined ? singleSecret(credential, TOOL) : needOneLine(credential, password, TOOL),
  }
}

interface Stored {
  readonly ServerURL: string
  readonly Username?: string
  readonly Secret?: string
}

function readStored(text: string): Stored {
  try {
    const value = JSON.parse(text) as Stored | null
    if (typeof value?.ServerURL === 'string') return value
  } catch {
    // Told below.
  }
  throw usage('Standard input is not what docker sends to be stored.')
}

/** `docker login` stores again what it was given; a password of the user's would be lost here, so it is refused. */
async function store(context: Context, entry: HostEntry | undefined, given: Stored): Promise<void> {
  if (entry !== undefined) {
    const ours = contextFor(context, entry)
    const known = await peekCached(await openAgentSession(ours), ours, requestOf(entry))
    if (known !== undefined && isSame(known, entry, given)) return
  }
  throw new CliError('not_stored', 'Mayfly stores no passwords: it issues the credentials of a registry.', {
    hint: 'Take this registry out of credHelpers in the configuration of docker to log in otherwise.',
  })
}

function isSame(credential: HeldCredential, entry: HostEntry, { Username, Secret }: Stored): boolean {
  try {
    const ours = pairOf(credential, entry)
    return ours.Username === Username && ours.Secret === Secret
  } catch {
    return false
  }
}

/** `docker logout`: the one of this registry alone. */
async function erase(context: Context, entry: HostEntry): Promise<void> {
  const ours = contextFor(context, entry)
  await endHeld(ours, await openAgentSession(ours), requestOf(entry))
}
