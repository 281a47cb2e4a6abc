import { usage } from '../frame/failure.ts'
import { showRows } from '../frame/list.ts'
import { listing } from '../frame/output.ts'
import { defineVerb } from '../frame/verb.ts'
import { ownCommand } from '../git/own-command.ts'
import { wayTo } from '../git/wrapper.ts'
import { openAgentSession } from '../session/open.ts'
import { removeFile } from '../session/private-file.ts'
import {
  addHelperBlock,
  helperPath,
  needTerraformHost,
  removeHelperBlock,
  terraformConfigPath,
} from '../terraform/config.ts'
import { changeHosts, hostRows, readHosts, writeHost } from '../tools/host-map.ts'
import { refuseForeign, scriptFor, writeProgram } from '../tools/program-file.ts'
import { REQUEST_OPTIONS, requestOf } from '../tools/request.ts'

const HOST = { name: '<host>', description: 'host of the registry or of remote operations' } as const

export const setup = defineVerb({
  description:
    'Makes Terraform and OpenTofu get their token for a host from a backend. Writes the helper to ~/.terraform.d/plugins, where they look for it, and a credentials_helper block to the configuration ($TF_CLI_CONFIG_FILE or ~/.terraformrc).',
  arguments: [HOST],
  options: REQUEST_OPTIONS,
  examples: [
    {
      command: 'mayfly terraform setup app.terraform.io --backend terraform',
      about: 'terraform init and plan work without a login',
    },
  ],
  json: '{host, backend, helper: path of the program, config: path of the configuration}',
  exits: [3, 4, 5],
  run: async (context, options, text) => {
    const host = needTerraformHost(text)
    const { backend, ttl } = requestOf(options)
    const { scope, param } = options
    const session = await openAgentSession(context)
    await session.client.backend(backend)
    const helper = helperPath(context)
    const way = wayTo(context, session)
    const config = await changeHosts(context, async () => {
      await refuseForeign(helper)
      // The block comes last: until then nothing changes for terraform.
      await writeHost(context, 'terraform', host, { backend, ttl, scope, param, way })
      const call = [...ownCommand(context), 'terraform-credentials']
      await writeProgram(helper, scriptFor('"mayfly terraform setup"', call))
      return addHelperBlock(context)
    })
    await context.out.show({ host, backend, helper, config }, () =>
      listing({ [host]: `token of ${backend}`, helper, config }),
    )
  },
})

export const list = defineVerb({
  description: 'Lists the hosts for which terraform gets its tokens from a backend.',
  examples: [{ command: 'mayfly terraform ls', about: 'each host and its backend' }],
  json: '[{host, backend, server}]',
  run: async (context) => {
    const rows = await hostRows(context, 'terraform')
    await showRows(context, rows, {
      things: 'hosts',
      none: 'No hosts are set up.',
      heading: ['HOST', 'BACKEND', 'SERVER'],
      cells: ({ host, backend, server }) => [host, backend, server],
    })
  },
})

export const unset = defineVerb({
  description:
    'Undoes "terraform setup" for a host; after the last host, also removes the helper and the block.',
  arguments: [HOST],
  examples: [{ command: 'mayfly terraform unset app.terraform.io', about: 'terraform works as before' }],
  json: '{host, config: path of the configuration}',
  run: async (context, _options, text) => {
    const host = needTerraformHost(text)
    await changeHosts(context, async () => {
      if (!(await writeHost(context, 'terraform', host, undefined)))
        throw usage('That host is not set up.', 'List the hosts with `mayfly terraform ls`.')
      if ((await readHosts(context, 'terraform')).size > 0) return
      await removeHelperBlock(context)
      const helper = helperPath(context)
      if (await refuseForeign(helper)) await removeFile(helper)
    })
    const config = terraformConfigPath(context)
    await context.out.show({ host, config }, () => listing({ [host]: 'removed' }))
  },
})
