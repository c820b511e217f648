import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';

import { sentence } from '../model/format';
import { Refusal } from '../model/link';
import type { ICancelArguments } from '../tokens';
import { CommandIDs, ILab } from '../tokens';

/** Adds the command that ends one of the user's jobs. */
export const cancelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'gpu-workbench:cancel',
  description: 'Ends a job of the user.',
  autoStart: true,
  requires: [ILab],
  activate: (app: JupyterFrontEnd, lab: ILab): void => {
    app.commands.addCommand(CommandIDs.cancel, {
      label: 'Cancel Job',
      describedBy: {
        args: {
          type: 'object',
          properties: {
            job: { type: 'string' },
            name: { type: 'string' },
            hasBegun: { type: 'boolean' }
          },
          required: ['job', 'name', 'hasBegun']
        }
      },
      execute: async args => {
        const { job, name, hasBegun } = args as unknown as ICancelArguments;
        if (hasBegun && !(await isSure(name))) {
          return;
        }
        try {
          await lab.cancel(job);
        } catch (error) {
          Notification.error(`${name} was not cancelled. ${reason(error)}`, { autoClose: false });
        }
      }
    });
  }
};

async function isSure(name: string): Promise<boolean> {
  const answer = await showDialog({
    title: `Cancel ${name}?`,
    defaultButton: 0,
    body: 'It has begun. What it has computed so far and not saved is lost.',
    buttons: [
      Dialog.cancelButton({ label: 'Keep running' }),
      Dialog.warnButton({ label: 'Cancel the job' })
    ]
  });
  return answer.button.accept;
}

function reason(error: unknown): string {
  if (error instanceof Refusal) {
    return [error.message, error.failure?.next_step ?? ''].filter(Boolean).map(sentence).join(' ');
  }
  return String(error);
}
