import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from './button.tsx'
import { Actions, Dialog } from './dialog.tsx'
import { ErrorNote } from './notes.tsx'

interface Props {
  /** A question with the name of what it is about: "End the agent ci?" */
  readonly title: string
  /** What ends, and that it cannot be undone. */
  readonly description: ReactNode
  /** The verb of the control: "End the agent". */
  readonly action: string
  readonly isDanger?: boolean
  readonly isWide?: boolean
  /** Why it cannot be sent yet. */
  readonly refused?: string | undefined
  /** More to enter, such as a reason. */
  readonly children?: ReactNode
  readonly onClose: () => void
  /** The request. The dialog stays until the server has answered, and says what it refused. */
  readonly work: () => Promise<unknown>
}

/** Asks before something ends. Nothing is shown as done before the server says so. */
export function Confirm(props: Props) {
  const {
    title,
    description,
    action,
    isDanger = true,
    isWide = false,
    refused,
    children,
    onClose,
    work,
  } = props
  const [state, setState] = useState<{ isSent: boolean; error?: unknown }>({ isSent: false })
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (state.isSent || refused !== undefined) return
    setState({ isSent: true })
    try {
      await work()
      onClose()
    } catch (error) {
      setState({ isSent: false, error })
    }
  }
  return (
    <Dialog title={title} description={description} isWide={isWide} onClose={onClose}>
      <form onSubmit={submit} className="grid gap-3">
        {children}
        {state.error !== undefined && <ErrorNote error={state.error} />}
        <Actions>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            look={isDanger ? 'danger' : 'primary'}
            disabled={state.isSent}
            refused={refused}
            {...(isDanger ? {} : { 'data-first': true })}
          >
            {state.isSent ? 'Sent, waiting for the answer…' : action}
          </Button>
        </Actions>
      </form>
    </Dialog>
  )
}
