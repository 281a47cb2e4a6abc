import { EXIT } from '../cli/frame/failure.ts'
import { oneLine } from '../cli/frame/terminal-text.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { whileWaiting } from '../cli/frame/waiting.ts'
import { readTarget } from '../cli/session/session.ts'
import type { Finding } from './doctor/finding.ts'
import { checkDataDir, checkFiles, checkGit, checkKeychain, checkNode } from './doctor/local.ts'
import { checkAdmin, checkBackends, checkLogin, checkNodes, checkServer } from './doctor/server.ts'

export const verb = defineVerb({
  description:
    'Finds problems and says how to fix them. Checks Node.js, the server and its certificate, the clocks, the versions, the login, admin access, what upstreams do not end, file permissions, the keychain, the data directory and git. Changes nothing.',
  examples: {
    'mayfly doctor': 'check everything',
    'mayfly doctor --json': 'for a program',
  },
  json: '[{"check", "level": "ok" | "warn" | "fail", "message", "fix"?}]',
  admin: true,
  run: async (context) => {
    const findings = await whileWaiting(context, 'Checking', examine(context))
    await context.out.show(findings, () => findings.map((one) => lineOf(context, one)).join('\n'))
    return findings.some(({ level }) => level === 'fail') ? EXIT.failed : EXIT.done
  },
})

async function examine(context: Context): Promise<Finding[]> {
  const server = await checkServer(context)
  const isUp = server.some(({ check, level }) => check === 'server' && level === 'ok')
  const login = isUp
    ? [
        await checkLogin(context, await readTarget(context)),
        await checkAdmin(context),
        ...(await checkBackends(context)),
        ...(await checkNodes(context)),
      ]
    : []
  return [
    checkNode(),
    ...server,
    ...login,
    ...(await checkFiles(context)),
    await checkKeychain(context),
    ...(await checkDataDir(context)),
    await checkGit(context),
  ]
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const
const WIDTH = 15

function lineOf({ out }: Context, { check, level, message, fix }: Finding): string {
  const head = `${out.paint(COLOURS[level], level.padEnd(5))} ${check.padEnd(WIDTH)} ${oneLine(message)}`
  return fix === undefined ? head : `${head}\n${' '.repeat(6 + WIDTH + 1)}${oneLine(fix)}`
}
