import { CliError } from '../frame/failure.ts'
import { defineVerb } from '../frame/verb.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { terraformHost } from '../terraform/config.ts'
import { endHeld, heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { atHost, readHosts } from '../tools/host-map.ts'
import { singleSecret } from '../tools/parts.ts'
import { requestOf } from '../tools/request.ts'

const OPERATIONS = ['get', 'store', 'forget'] as const

/** developer.hashicorp.com/terraform/internals/credentials-helpers */
export const verb = defineVerb({
  description:
    'The credentials helper of Terraform and OpenTofu, which run it as terraform-credentials-mayfly; "mayfly terraform setup" configures it. "get" answers from a cache when possible, "forget" revokes the credential, "store" is refused.',
  arguments: [
    { name: '<operation>', description: 'get, store or forget; terraform adds it', choices: OPERATIONS },
    { name: '<host>', description: 'the host that terraform calls' },
  ],
  examples: [{ command: 'mayfly terraform-credentials get app.terraform.io', about: 'what terraform runs' }],
  json: '{token}, or {} for an unknown host, with or without --json',
  exits: [3, 4, 5],
  run: async (context, _options, operation, host) => {
    const entry = (await readHosts(context, 'terraform')).get(terraformHost(host) ?? '')
    if (operation === 'store')
      throw new CliError('not_stored', 'Mayfly issues tokens and does not store them.', {
        hint: 'After `mayfly terraform setup` there is no need for `terraform login`.',
      })
    if (entry === undefined) {
      // Neither asking for an unknown host nor forgetting it is a failure.
      if (operation === 'get') await context.out.result('{}')
      return
    }
    await atHost(context, entry, verb, async (ours) => {
      const session = await openAgentSession(ours)
      if (operation === 'forget') return endHeld(ours, session, requestOf(entry))
      const toToken = (credential: HeldCredential) => singleSecret(credential, 'terraform')
      const token = await heldAnswer(ours, session, requestOf(entry), RENEW_BEFORE_MS.command, toToken)
      await context.out.json({ token }, 'line')
    })
  },
})
