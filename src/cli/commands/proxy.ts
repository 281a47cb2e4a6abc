import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from '../../domain/limits.ts'
import { isLoopbackAddress } from '../../domain/network/loopback.ts'
import type { ProxySettings } from '../../proxy/types.ts'
import { readDuration } from '../frame/duration.ts'
import { usage } from '../frame/failure.ts'
import { many, text, type ValuesOf } from '../frame/options.ts'
import { type Context, defineVerb } from '../frame/verb.ts'
import { openProjectFile } from '../project-file/open.ts'
import { isUid, readListen } from '../project-file/own-proxy-wish.ts'
import { settingsOf } from '../project-file/proxy-wish.ts'
import { type ProxyFile, readProxyFile } from '../project-file/read-proxy-file.ts'
import { PROXY_OPTIONS, wishOfFlags } from '../run/proxy-options.ts'
import { CREDENTIAL_OPTIONS, checkOnce, requestedByFlags } from '../run/requested-credentials.ts'
import { type ProxyAlone, serveAlone } from '../run/serve-alone.ts'

const { backend, env, file, ttl, scope, param } = CREDENTIAL_OPTIONS

const OPTIONS = {
  // Not --env-file: Node reads an option of this name itself, wherever it stands.
  ...{ backend, env, file, ttl, scope, param },
  config: text('<file>', 'a file with the credentials and settings; flags say more than it'),
  writeEnv: text(
    '<file>',
    'write the environment for the programs into this file, when everything listens; the files that it names are in a directory beside it; both are removed at the end',
  ),
  listen: text(
    '<address>',
    'listen on this address of the machine; default: 127.0.0.1; with a port, that is the one for HTTPS_PROXY',
  ),
  uid: many(
    '<number>',
    'a user whose programs may connect, or any, where a container or pod is the border; default: the one of the proxy; may be repeated',
  ),
  ...PROXY_OPTIONS,
  heartbeat: text('<duration>', 'how often to tell the server that the proxy runs, 1s to 1h'),
  purpose: text('<text>', 'what the run is for, as administrators and the audit see it'),
  run: text('<id>', 'serve this run, which somebody else began and keeps alive, in place of one of its own', {
    values: 'runs',
  }),
}

export const verb = defineVerb({
  description:
    'Holds the secrets of a run for programs that get none: they hold placeholders, and the proxy puts the secrets into the requests that its rules permit. ' +
    'It serves until SIGTERM, or until the run has ended, and with it end the credentials and every connection that uses them. ' +
    'Under another user, or in a container of its own, its memory and its login are out of reach of the programs. For one command on your own machine, use `mayfly run --proxy`.',
  options: OPTIONS,
  examples: {
    'mayfly proxy --config /etc/mayfly-proxy/coder.yaml': 'as a service, for the programs of another user',
    'mayfly proxy --backend github --backend orders-db --write-env ./proxy.env':
      'for programs that are started with this environment',
  },
  json: 'one line when everything listens: {run, env_file, variables, forward, sites: [{name, use, url}], databases: [{name, use, host, port}]}',
  exits: [3, 4, 5],
  ownSignals: true,
  run: async (context, options) => serveAlone(context, await readWish(context, options)),
})

async function readWish(context: Context, options: ValuesOf<typeof OPTIONS>): Promise<ProxyAlone> {
  const { config, heartbeat, writeEnv, purpose, run } = options
  const ofFile = config === undefined ? undefined : await readConfig(context, config)
  const requested = [...(ofFile?.credentials ?? []), ...requestedByFlags(options)]
  checkOnce(requested)
  if (requested.length === 0)
    throw usage(
      'No credentials requested.',
      'Request them with --backend, --env or --file, or in the file of --config.',
    )
  if (heartbeat !== undefined)
    await readDuration('--heartbeat', heartbeat, MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS)
  const beats = heartbeat ?? ofFile?.heartbeat
  if (run !== undefined && [heartbeat, purpose].some((one) => one !== undefined))
    throw usage('--heartbeat and --purpose are for a run of its own.', 'Leave them out with --run.')
  const settings = settingsOf(ofFile?.wish, await wishOfFlags(options), wishOfOwnFlags(options))
  if (!isLoopbackAddress(settings.listen.host) && settings.uids !== 'any')
    throw usage(
      'Whose a connection from elsewhere is cannot be told.',
      'Listen on 127.0.0.1, or, where a container or pod is the border, add --uid any.',
    )
  return {
    requested,
    settings,
    envFile: writeEnv ?? ofFile?.envFile,
    run,
    wish: { heartbeat: beats, purpose: purpose ?? ofFile?.purpose, onEnd: 'SIGTERM', isVerbose: false },
  }
}

/** Whoever names the file has chosen it, as the one of a server. */
async function readConfig(context: Context, name: string): Promise<ProxyFile> {
  return readProxyFile(await openProjectFile(context, name, { isTrusted: true }))
}

function wishOfOwnFlags({ listen: address, uid }: ValuesOf<typeof OPTIONS>): Partial<ProxySettings> {
  const listen = address === undefined ? undefined : readListen(address)
  if (address !== undefined && listen === undefined)
    throw usage('--listen takes an address of this machine.', 'Example: --listen 127.0.0.1:3128.')
  const uids = uid?.includes('any') ? 'any' : uid?.map(readUid)
  return { ...(listen !== undefined && { listen }), ...(uids !== undefined && { uids }) }
}

function readUid(text: string): number {
  if (/^\d{1,10}$/.test(text) && isUid(Number(text))) return Number(text)
  throw usage('--uid takes the number of a user, or any.', 'Example: --uid "$(id -u agent)".')
}
