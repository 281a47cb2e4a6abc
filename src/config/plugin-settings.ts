import { list, text } from './setting.ts'
import { parsePath, parseUser, parseVariable } from './values.ts'

export const pluginSettings = {
  plugin_dir: text(
    {
      description:
        'Directory of the plugins that were added. It must belong to root or the user of the server, and nobody else may write to it.',
      'x-default': '`<data_dir>/plugins`',
      'x-argument': '<path>',
    },
    parsePath,
  ),
  plugin_user: text(
    {
      description:
        'User that plugins run as, a name or a number. Only a server that runs as root can start them as another user.',
      'x-default': 'the user of the server',
      'x-argument': '<user>',
    },
    parseUser,
  ),
  plugin_env: list(
    {
      description: 'Variables of the server that plugins get. They get no others.',
      default: [],
      'x-argument': '<name>',
    },
    parseVariable,
  ),
}
