import { ADMIN } from '../cli/admin/verbs.ts'
import { noteWarnings } from '../cli/admin/warnings.ts'
import { EXIT, usage } from '../cli/frame/failure.ts'
import { many, text } from '../cli/frame/options.ts'
import { listing, table } from '../cli/frame/output.ts'
import { type Context, defineVerb } from '../cli/frame/verb.ts'
import { openAdminClient } from '../cli/session/admin.ts'
import type { Explanation } from '../client/wire.ts'
import type { Fault } from '../domain/fault.ts'
import { faultsOf, fileOf, noteFaults } from './config-file.ts'
import { filesFrom } from './init/installation.ts'

export const check = defineVerb({
  description:
    'Checks the policies in a configuration file like a starting server, and reports every fault with its line. Needs no server.',
  arguments: [{ name: '[file]', description: 'the configuration file [env: MAYFLY_CONFIG]' }],
  examples: { 'mayfly policy check mayfly.yaml': 'before restarting the server' },
  json: '{"file", "policies": [{"name", "pattern", "scopes", "auto_approve"}], "faults": [{"source": "FILE:LINE:COLUMN", "message"}]}',
  run: async (context, _options, given) => {
    const file = fileOf(context, given)
    const { policies, faults } = await readPolicies(context, file)
    const shown = policies.map(({ autoApprove: auto_approve, name, pattern, scopes }) => {
      return { name, pattern, scopes, auto_approve }
    })
    if (context.out.isJson) await context.out.json({ file, policies: shown, faults })
    else noteFaults(context, faults)
    if (faults.length > 0) return EXIT.failed
    if (context.out.isJson) return EXIT.done
    await context.out.result(
      table(
        ['POLICY', 'NAMES', 'APPROVES', 'SCOPES'],
        shown.map((one) => [
          one.name,
          one.pattern,
          one.auto_approve ? 'at once' : 'an administrator',
          one.scopes.join(' '),
        ]),
      ),
    )
    context.out.note(`${file}: no faults.`)
    return EXIT.done
  },
})

export const explain = defineVerb({
  description:
    'Shows which policy would decide on an enrollment with this name and these scopes, what it would decide, and why. It asks the server, which also counts agents and approvals, or reads a file.',
  arguments: [{ name: '<name>', description: 'name of the agent to enroll' }],
  options: {
    scope: many('<scope>', 'a scope to request; may be repeated; by default those of the policy'),
    file: text('<file>', 'read the policies from this configuration file instead'),
  },
  examples: {
    "mayfly policy explain ci-42 --scope 'github:acme/app'": 'ask the server',
    'mayfly policy explain ci-42 --file mayfly.yaml': 'try a file before using it',
  },
  json: async () => (await import('../api/policies.ts')).Explanation,
  ...ADMIN,
  run: async (context, { scope, file }, name) => {
    const scopes = scope === undefined ? undefined : [...scope]
    const explained =
      file === undefined
        ? await (await openAdminClient(context)).admin.explainPolicy({ name, scopes })
        : await explainFile(context, file, name, scopes)
    if (explained === undefined) return EXIT.failed
    if (!context.out.isJson) noteWarnings(context, explained)
    await context.out.show(explained, () => describe(explained))
    return EXIT.done
  },
})

async function explainFile(
  context: Context,
  given: string,
  name: string,
  scopes: string[] | undefined,
): Promise<Explanation | undefined> {
  const { policies, faults } = await readPolicies(context, fileOf(context, given))
  noteFaults(context, faults)
  if (faults.length > 0) return undefined
  const { explainPolicies } = await import('../config/policy-file.ts')
  try {
    const explained = explainPolicies(policies, { name, scopes })
    const { decision, reason, policy = null, expiresIn: expires_in = null } = explained
    const lists = { scopes: [...explained.scopes], policies: [...explained.policies] }
    return { name, decision, reason: reason === '' ? null : reason, policy, expires_in, ...lists }
  } catch (error) {
    if (error instanceof Error && error.name === 'InvalidValue') throw usage(`${error.message}.`)
    throw error
  }
}

function describe(explained: Explanation): string {
  const isApproved = explained.decision === 'approve'
  const facts = listing({
    name: explained.name,
    decision: isApproved ? 'approved at once' : 'needs an administrator',
    why: explained.reason ?? `The policy "${explained.policy}" grants every scope.`,
    policy: explained.policy ?? '(none)',
    scopes: explained.scopes.join(', ') || '(none)',
    lifetime: isApproved ? (explained.expires_in ?? 'never') : undefined,
  })
  if (explained.policies.length === 0) return facts
  const rows = explained.policies.map(({ name, pattern, matches, decides }) => [
    name,
    pattern,
    decides ? 'decides' : matches ? 'also matches, but comes later' : 'does not match',
  ])
  return `${facts}\n\n${table(['POLICY', 'NAMES', ''], rows)}`
}

/** Returns the faults instead of throwing them. */
async function readPolicies(context: Context, file: string) {
  const { readPolicyFile } = await import('../config/policy-file.ts')
  try {
    const policies = await readPolicyFile(file, filesFrom(context))
    return { policies, faults: [] as readonly Fault[] }
  } catch (error) {
    return { policies: [], faults: faultsOf(error) }
  }
}
