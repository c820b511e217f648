import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';

import { CommandIDs, ILab } from '../tokens';
import { GpuStatusItem } from '../widgets/status-item';

/** Adds the always visible answer to "is there a GPU for me?". */
export const statusbarPlugin: JupyterFrontEndPlugin<void> = {
  id: 'gpu-workbench:statusbar',
  description: 'Says in the status bar whether the user has a GPU.',
  autoStart: true,
  requires: [ILab, IStatusBar],
  activate: ({ commands }: JupyterFrontEnd, lab: ILab, statusBar: IStatusBar): void => {
    const item = new GpuStatusItem(lab, () => void commands.execute(CommandIDs.open));
    statusBar.registerStatusItem('gpu-workbench:gpu', { item, align: 'left', rank: 90 });
  }
};
