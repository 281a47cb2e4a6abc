import { parseJson } from '../../domain/formats/json.ts'
import {
  addHelper,
  configKey,
  dockerConfigPath,
  needRegistry,
  registryOf,
  removeHelper,
} from '../docker/host.ts'
import { CliError, EXIT, failureOf, usage } from '../frame/failure.ts'
import { readStdin } from '../frame/prompt.ts'
import { oneLine } from '../frame/terminal-text.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { peekCached } from '../session/credential-cache.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { endHeld, heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { atHost, type HostEntry, readHosts } from '../tools/host-map.ts'
import { needOneLine, partOf, singleSecret } from '../tools/parts.ts'
import { requestOf } from '../tools/request.ts'
import { configureHost, HOST_OPTIONS, type HostHelper, needOperation } from './host-helper.ts'

/** Clients recognise this exact text as "no credential" and continue without one. */
const MISS = 'credentials not found in native keychain'
const MAX_INPUT_BYTES = 65_536
const TOOL = 'docker'
const OPERATIONS = ['get', 'store', 'erase', 'list'] as const

const DOCKER: HostHelper = {
  tool: 'docker',
  noun: ['registry', 'registries'],
  needHost: needRegistry,
  enable: async (context, host) => ({ config: await addHelper(context, configKey(host)) }),
  disable: async (context, host) => {
    await removeHelper(context, configKey(host))
    return dockerConfigPath(context)
  },
}

/** github.com/docker/docker-credential-helpers defines what clients send and expect, including errors. */
export const verb = defineVerb({
  description:
    'The credential helper of docker, which runs it as docker-credential-mayfly. With --write, docker gets its credentials for a registry from a backend: that writes credHelpers in the configuration of docker ($DOCKER_CONFIG). "get" answers from a cache when possible, "erase" revokes the credential, "store" accepts only what "get" answered.',
  arguments: [
    { name: '[operation]', description: 'get, store, erase or list; docker adds it', choices: OPERATIONS },
  ],
  options: HOST_OPTIONS,
  examples: {
    'mayfly helper docker --write --host registry.example.com --backend registry':
      'docker pull and push work without a login',
    'mayfly helper docker --remove --host registry.example.com': 'docker works as before',
    'echo registry.example.com | mayfly helper docker get': 'what docker runs',
  },
  json: 'what docker reads, with or without --json: {ServerURL, Username, Secret}, or {ServerURL: Username} for list; with --write {registry, backend, config: path of the configuration of docker}, with --list [{registry, backend, server}]',
  exits: [3, 4, 5],
  run: async (context, options, operation) => {
    const { username } = options
    if (username !== undefined && !/^[\x21-\x39\x3b-\x7e]{1,255}$/.test(username))
      throw usage('--username is not valid.', 'Use no spaces and no colon.')
    if (await configureHost(context, DOCKER, options)) return EXIT.done
    try {
      return await runOperation(context, needOperation(operation))
    } catch (error) {
      // Clients look for the reason on standard output, some of them only there.
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
  const toPair = (credential: HeldCredential) => pairOf(credential, entry)
  const pair = await atHost(context, entry, verb, async (ours) =>
    heldAnswer(ours, await openAgentSession(ours), requestOf(entry), RENEW_BEFORE_MS.command, toPair),
  )
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
  const value = parseJson(text) as Stored | null | undefined
  if (typeof value?.ServerURL === 'string') return value
  throw usage('Standard input is not in the format of a docker credential helper.')
}

/** `docker login` stores the credential it got from us. We refuse anything else, because it would be lost. */
async function store(context: Context, entry: HostEntry | undefined, given: Stored): Promise<void> {
  if (entry !== undefined) {
    const known = await atHost(context, entry, verb, async (ours) =>
      peekCached(await openAgentSession(ours), ours, requestOf(entry)),
    )
    if (known !== undefined && isSame(known, entry, given)) return
  }
  throw new CliError(
    'not_stored',
    'Mayfly issues the credentials of this registry and does not store passwords.',
    {
      hint: 'To log in differently, remove this registry from credHelpers in the configuration of docker.',
    },
  )
}

function isSame(credential: HeldCredential, entry: HostEntry, { Username, Secret }: Stored): boolean {
  try {
    const ours = pairOf(credential, entry)
    return ours.Username === Username && ours.Secret === Secret
  } catch {
    return false
  }
}

/** `docker logout` of this registry. */
async function erase(context: Context, entry: HostEntry): Promise<void> {
  await atHost(context, entry, verb, async (ours) =>
    endHeld(ours, await openAgentSession(ours), requestOf(entry)),
  )
}
