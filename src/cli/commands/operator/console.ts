import type { Client } from '../../../client/client.ts'
import { adminSocketOf } from '../../../files/admin-socket.ts'
import { ADMIN } from '../../admin/verbs.ts'
import { text } from '../../frame/options.ts'
import { relative } from '../../frame/times.ts'
import { type Context, defineVerb } from '../../frame/verb.ts'
import { openAdminClient, openSocketClient } from '../../session/admin.ts'
import { readLastServer } from '../../session/last-server.ts'
import { isAnswered, namedDataDir } from '../../session/local-server.ts'

export const verb = defineVerb({
  description:
    "Prints a link that logs you in to the console with a browser, once, within a minute. Without --operator, it is for the operator whom the first such link made; while there is none, the page asks for a name, and makes one who may do everything. Works only on the server's machine, for its user and root.",
  options: { operator: text('<email>', 'log in this operator: one who lost their passkey, for example') },
  examples: {
    'mayfly console': 'log in for the first time',
    'mayfly console --operator alice@example.com': 'a link for a colleague',
  },
  json: async () => (await import('../../../api/operators.ts')).LoginLink,
  ...ADMIN,
  run: async (context, { operator }) => {
    const client = await openServer(context)
    const link = await client.admin.loginLink({ operator })
    await context.out.show(link, () => link.url)
    if (context.out.isJson) return
    const who = link.operator ?? 'the first operator: the person who opens it'
    context.out.note(`For ${who}. It works once, and ends ${relative(link.expires_at, context.now())}.`)
  },
})

/** The server that is named; else the one that this user started last; else any that the other verbs of administrators find. */
async function openServer(context: Context): Promise<Client> {
  const named = namedDataDir(context)
  if (named !== undefined) return openSocketClient(context, named)
  const last = await readLastServer(context)
  if (last !== undefined && (await isAnswered(adminSocketOf(last.dataDir))))
    return openSocketClient(context, last.dataDir)
  return openAdminClient(context, { asLocal: true })
}
