import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';

import { ServerTransport } from '../api/request';
import { Lab } from '../model/lab';
import { ILab } from '../tokens';

/** Provides what is known of the lab; listens only while the page can be seen. */
export const labPlugin: JupyterFrontEndPlugin<ILab> = {
  id: 'gpu-workbench:lab',
  description: 'Keeps the devices and the queue up to date.',
  autoStart: true,
  provides: ILab,
  activate: (app: JupyterFrontEnd): ILab => {
    const lab = new Lab(new ServerTransport(app.serviceManager.serverSettings));
    const look = (): void => lab.setVisible(!document.hidden);
    document.addEventListener('visibilitychange', look);
    look();
    void app.started.then(() => lab.run());
    return lab;
  }
};
