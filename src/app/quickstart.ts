import { createAgent } from '../core/agents/create-agent.ts'
import { createBackend } from '../core/backends/configure-backend.ts'
import type { Actor, LocalCaller } from '../core/caller.ts'
import type { Core } from '../core/context.ts'
import { makeLoginLink } from '../core/sessions/login-links.ts'
import { openLineSink } from '../log/line-sink.ts'

/**
 * On the first start creates a backend that needs no upstream and an agent that may use it, and prints the agent's
 * secrets, once, with commands to try them.
 */
export async function quickstart(core: Core, at: { address: string; dataDir: string }): Promise<void> {
  const base = at.address
  const actor: Actor<LocalCaller> = {
    caller: { kind: 'local', method: 'quickstart', generation: await core.store.generation() },
    origin: { requestId: 'quickstart', ipAddress: null, userAgent: null },
  }
  const known = await core.store.agents.list(undefined, 1)
  if (known.length > 0) {
    print([
      `Mayfly listens on ${base}; its data is in ${at.dataDir}.`,
      `Create another agent:  ${createLine(base)}`,
      ...(await consoleLines(core, actor)),
      '',
    ])
    return
  }
  // An interrupted first start may have created it.
  if ((await core.store.backends.findByName('demo')) === undefined) {
    await createBackend(
      core,
      actor,
      { type: 'jwt', name: 'demo', config: { audience: 'demo' }, description: 'created by the first start' },
      true,
    )
  }
  const command = { name: 'first-agent', scopes: ['demo'] }
  const { agent, token, clientSecret } = await createAgent(core, actor, command)
  const bearer = `-H "Authorization: Bearer $TOKEN"`
  print([
    `Mayfly listens on ${base}; its data is in ${at.dataDir} (back up master.key).`,
    '',
    'Created (the secrets are shown only once):',
    `  backend  demo         (kind jwt: signed tokens, no upstream needed)`,
    `  agent    ${agent.name}  (scope demo)`,
    `  token          ${token}`,
    `  client_id      ${agent.clientId}`,
    `  client_secret  ${clientSecret}`,
    '',
    'Try it: issue a credential, read it, revoke it, and read the audit log.',
    `  TOKEN=${token}`,
    '  umask 077 # only you can read credential.json',
    `  curl -s ${bearer} -H 'Content-Type: application/json' -d '{"backend":"demo","ttl":"10m"}' ${base}/api/v1/credentials | tee credential.json; echo`,
    `  ID=$(sed 's/.*"id":"\\([^"]*\\)".*/\\1/' credential.json)`,
    `  curl -s ${bearer} ${base}/api/v1/credentials/$ID; echo`,
    `  curl -s ${bearer} -X DELETE ${base}/api/v1/credentials/$ID; echo`,
    `  curl -s ${bearer} "${base}/api/v1/audit?since=10m"; echo`,
    '',
    'On this machine an administrator needs no credentials:',
    `  ${createLine(base)}`,
    ...(await consoleLines(core, actor)),
    `API documentation: ${base}/docs`,
    '',
  ])
}

async function consoleLines(core: Core, actor: Actor<LocalCaller>): Promise<string[]> {
  if (core.settings.console === 'off') return []
  const { url } = await makeLoginLink(core, actor, undefined)
  return ['Log in with a browser, within a minute (npx mayfly console prints another link):', `  ${url}`]
}

function createLine(base: string): string {
  return `curl -s -H 'Content-Type: application/json' -d '{"name":"my-agent","scopes":["demo"]}' ${base}/v1/admin/agents; echo`
}

function print(lines: readonly string[]): void {
  openLineSink(1).write(`\n${lines.join('\n')}\n`)
}
