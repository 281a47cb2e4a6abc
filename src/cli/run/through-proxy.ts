import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unlessAborted } from '../../domain/abort.ts'
import type { ProxySettings } from '../../proxy/types.ts'
import type { Context } from '../frame/verb.ts'
import { whileWaiting } from '../frame/waiting.ts'
import type { RequestedCredential } from '../project-file/requested-credential.ts'
import { warnOfLogin } from './login-in-reach.ts'
import { runOfOthers } from './open-run.ts'
import { deliverAll } from './prepare.ts'
import { asIssuance } from './proxied.ts'
import { describeProxyEnd } from './proxy-end.ts'
import { type ProxyProcess, startProxyProcess } from './proxy-process.ts'
import { describeTotals, whereRefused } from './proxy-totals.ts'
import type { Redaction } from './redact.ts'
import type { Preparation, ProxyReport } from './supervise.ts'

export interface ThroughProxy {
  readonly requested: readonly RequestedCredential[]
  /** The environment of the command before credentials are added; without a login. */
  readonly env: Context['env']
  readonly redaction: Redaction | undefined
  readonly settings: ProxySettings
}

/**
 * Starts a proxy that obtains the credentials, and delivers placeholders in their place. Returns the environment of the command.
 * The proxy ends with the command; if it ends before, the command is told.
 */
export async function prepareThroughProxy(
  context: Context,
  preparation: Preparation,
  { requested, env, redaction, settings }: ThroughProxy,
): Promise<Context['env']> {
  const { issued, note, openDirectory, onEnd, onReport, session } = preparation
  let runId = ''
  const proxy = startProxyProcess(context, {
    note: (text) => note(`mayfly: ${text}`),
    onIssued: ({ id, ...known }) => issued.adopt(id, known),
    onEnded: (end) => preparation.stopCommand(describeProxyEnd(runId, end)),
    onLost: () => endWithProxy(preparation),
  })
  let totals: Awaited<ReturnType<ProxyProcess['close']>>
  onEnd(async () => {
    totals = await proxy.close()
  })
  const report = () => onReport((deadMs) => reportOf(runId, totals, issued.outcomes().length, deadMs))

  const [run, root] = await Promise.all([runFor(preparation), openDirectory()])
  runId = run.id
  const directory = join(root.path, 'proxy')
  await mkdir(directory, { mode: 0o700 })
  const requests = requested.map(({ name, request }) => ({ name, request }))
  const starting = proxy.start({ run, requests, settings, directory, root: root.path })
  const obtained = (
    await whileWaiting(context, 'Waiting for the proxy', unlessAborted(starting, preparation.signal))
  ).map(asIssuance)
  report()
  // Heartbeats that were answered in the meantime.
  const open = await preparation.run
  open?.onBeaten(proxy.beaten)
  if (open !== undefined) proxy.beaten(open.sinceBeat())
  const delivered = await deliverAll(context, preparation, { requested, env, redaction, obtained })
  const { variables, notes } = await proxy.leadTo(delivered)
  for (const text of notes) note(text)
  await warnOfLogin(context, session, note)
  return { ...delivered, ...variables }
}

/** The proxy was killed: what it held must not outlive it until the command has ended. */
function endWithProxy({ run, stopCommand }: Preparation): void {
  stopCommand('the proxy has ended by itself')
  const end = async () => {
    const open = await run
    open?.stopBeating()
    await open?.end({})
  }
  // The end of the command tries again.
  end().catch(() => {})
}

async function runFor({ run, session, signal }: Preparation) {
  const open = await run
  if (open !== undefined) {
    const { id, heartbeatMs, sinceBeat } = open
    return { id, heartbeatMs, isOwn: true, beatenAgoMs: sinceBeat() }
  }
  return { ...(await runOfOthers(session, { signal })), isOwn: false, beatenAgoMs: 0 }
}

function reportOf(
  run: string,
  totals: Awaited<ReturnType<ProxyProcess['close']>>,
  credentials: number,
  deadMs: number | undefined,
): ProxyReport {
  const dead = deadMs === undefined ? '' : `; dead after ${spent(deadMs)}`
  if (totals === undefined) return { text: `what the proxy did is not known${dead}`, facts: {} }
  return {
    text: `${describeTotals(totals, credentials)}${dead}${whereRefused(totals, run)}`,
    facts: { ...totals, ...(deadMs !== undefined && { dead_after_ms: Math.round(deadMs) }) },
  }
}

const spent = (ms: number) => (ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`)
